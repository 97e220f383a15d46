//! The words that sessions have said.

use std::collections::VecDeque;

use leaderelection::election::Heard;
use leaderelection::sessions::machine::SessionId;

use crate::simulation::dice::Dice;

/// The number of words that a liar remembers.
pub(super) const REMEMBERED: usize = 40;

/// Liars say a larger number than any session.
pub(super) const LARGE: u64 = 1 << 40;

/// The words so far. The channel has a chance of its own, so that runs without words have the histories that they had before
/// there were any.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) said: VecDeque<(SessionId, Heard)>,
    pub(super) number: u64,
    pub(super) dice: Dice,
}

impl Words {
    pub(super) fn new(seed: u64) -> Self {
        Self { said: VecDeque::new(), number: 0, dice: Dice::new(seed ^ LARGE) }
    }
}
