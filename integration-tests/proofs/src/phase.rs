//! The locks that a process uses together, and the rollouts between them.

/// The locks that a process uses together; none if there is only one lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Phase {
    /// The numbers of the locks, in the order in which they are taken.
    pub parts: &'static [usize],
    /// The number of locks that a leader needs.
    pub needs: usize,
}

/// The old lock only.
pub(crate) const OLD: Phase = Phase { parts: &[0], needs: 1 };

/// The old lock and the new one.
pub(crate) const BOTH: Phase = Phase { parts: &[0, 1], needs: 2 };

/// The new lock only.
pub(crate) const NEW: Phase = Phase { parts: &[1], needs: 1 };

/// All of three locks.
pub(crate) const ALL: Phase = Phase { parts: &[0, 1, 2], needs: 3 };

/// Two of three locks.
pub(crate) const MOST: Phase = Phase { parts: &[0, 1, 2], needs: 2 };

/// Three of four locks.
pub(crate) const MOST_OF_FOUR: Phase = Phase { parts: &[0, 1, 2, 3], needs: 3 };

impl Phase {
    /// Returns `true` if the process uses several locks as one.
    pub(crate) fn is_joint(self) -> bool {
        self.parts.len() > 1
    }
}

/// The locks in each of three rollouts.
pub(crate) type Rollouts = [Phase; 3];

/// From the old lock to the new one.
pub(crate) const FORWARD: Rollouts = [OLD, BOTH, NEW];

/// From the new lock to the old one.
pub(crate) const BACK: Rollouts = [NEW, BOTH, OLD];

/// From one lock to two of three.
pub(crate) const TO_THREE: Rollouts = [OLD, ALL, MOST];

/// From two of three locks to one.
pub(crate) const TO_ONE: Rollouts = [MOST, ALL, OLD];

/// With both locks all the time.
pub(crate) const STAYS: Rollouts = [BOTH; 3];

/// With two of three locks all the time.
pub(crate) const STAYS_THREE: Rollouts = [MOST; 3];

/// With all of three locks all the time.
pub(crate) const STAYS_ALL: Rollouts = [ALL; 3];

/// With three of four locks all the time.
pub(crate) const STAYS_FOUR: Rollouts = [MOST_OF_FOUR; 3];

/// Returns the phase after a phase.
pub(crate) fn next(rollouts: &Rollouts, phase: Phase) -> Option<Phase> {
    let at = rollouts.iter().position(|other| *other == phase)?;
    rollouts.get(at + 1).copied()
}
