//! The phases of a move, and its direction.

use leaderelection::migration::view::Half;

/// The locks that a process uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The old lock only.
    Old,
    /// Both.
    Both,
    /// The new lock only.
    New,
}

impl Phase {
    pub(super) fn halves(self) -> &'static [Half] {
        match self {
            Self::Old => &[Half::Old],
            Self::Both => &[Half::Old, Half::New],
            Self::New => &[Half::New],
        }
    }

    pub(super) fn next(self, direction: Direction) -> Option<Self> {
        match (self, direction) {
            (Self::Old, Direction::Forward) | (Self::New, Direction::Back) => Some(Self::Both),
            (Self::Both, Direction::Forward) => Some(Self::New),
            (Self::Both, Direction::Back) => Some(Self::Old),
            (Self::New, Direction::Forward) | (Self::Old, Direction::Back) => None,
        }
    }
}

/// The direction of the rollouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the old lock to the new one.
    Forward,
    /// From the new lock to the old one.
    Back,
}
