//! The channel between processes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use leaderelection::DefaultLeaderElector;
use leaderelection::election::Heard;

use super::dice::Dice;
use super::names::ProcessId;
use super::scenario::NODES;

/// The number of words that liars know.
pub(super) const REMEMBERED: usize = 24;

/// A process, and the elector of it that hears.
type Ear = (ProcessId, Weak<DefaultLeaderElector>);

/// The way between processes.
#[derive(Debug)]
pub(super) struct Channel {
    /// The processes that hear what is said to their nodes.
    pub(super) ears: Mutex<[Option<Ear>; NODES]>,
    pub(super) dice: Mutex<Dice>,
    /// The last words about writes, whether they have landed or not.
    pub(super) writes: Mutex<VecDeque<Heard>>,
    /// The last word of a leader.
    pub(super) last: Mutex<Option<Heard>>,
    numbers: AtomicU64,
}

impl Channel {
    pub(super) fn new(dice: Dice) -> Self {
        Self {
            ears: Mutex::default(),
            dice: Mutex::new(dice),
            writes: Mutex::default(),
            last: Mutex::default(),
            numbers: AtomicU64::default(),
        }
    }

    /// Lets the process of a node hear what is said from now on. A crashed process hears nothing more.
    pub(super) fn listens(&self, node: usize, process: ProcessId, elector: &Arc<DefaultLeaderElector>) {
        self.ears.lock().unwrap()[node] = Some((process, Arc::downgrade(elector)));
    }

    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}
