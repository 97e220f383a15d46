//! The leader of each lock, and the times without one.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use leaderelection::Leadership;
use tokio::time::Instant;

/// The reason for which a lock had no leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Its leader's process was stopped gracefully.
    Stop,
    /// Its leader's process died.
    Crash,
    /// Its leader went on, and gave this lock up.
    HandOver,
}

/// One time without a leader.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    pub(super) cause: Cause,
    pub(super) lasted: Duration,
    /// The moment of its end.
    pub(super) ended_at: Instant,
}

/// The locks, as their users see them. Clones are one watch.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Arc<Mutex<Locks>>);

#[derive(Debug, Default)]
struct Locks {
    locks: Vec<Lock>,
    led: usize,
    gaps: Vec<Gap>,
    overlaps: usize,
}

#[derive(Clone, Debug, Default)]
struct Lock {
    leader: Option<usize>,
    leadership: Option<Leadership>,
    left: Option<(Instant, Cause)>,
}

/// A term of a lock, until the work of the term is dropped.
#[derive(Debug)]
pub(super) struct Term {
    watch: Watch,
    lock: usize,
    cause: Arc<Mutex<Cause>>,
}

impl Watch {
    pub(super) fn over(locks: usize) -> Self {
        Self(Arc::new(Mutex::new(Locks { locks: vec![Lock::default(); locks], ..Locks::default() })))
    }

    /// Begins a term. Its process says in `cause` why it ends, if it ends.
    pub(super) fn lead(&self, lock: usize, member: usize, leadership: &Leadership, cause: &Arc<Mutex<Cause>>) -> Term {
        let mut locks = self.locks();
        let Locks { locks, led, gaps, overlaps } = &mut *locks;
        match locks[lock].leader.replace(member) {
            Some(_) => *overlaps += 1,
            None => *led += 1,
        }
        locks[lock].leadership = Some(leadership.clone());
        if let Some((since, cause)) = locks[lock].left.take() {
            gaps.push(Gap { cause, lasted: since.elapsed(), ended_at: Instant::now() });
        }
        Term { watch: self.clone(), lock, cause: Arc::clone(cause) }
    }

    /// Lets the leader of a lock give it up.
    pub(super) fn step_down(&self, lock: usize) {
        let leadership = self.locks().locks[lock].leadership.clone();
        if let Some(leadership) = leadership {
            leadership.step_down();
        }
    }

    /// The number of locks that are led.
    pub(super) fn led(&self) -> usize {
        self.locks().led
    }

    /// The number of locks that each of so many members leads.
    pub(super) fn shares(&self, members: usize) -> Vec<usize> {
        let mut shares = vec![0; members];
        self.locks().locks.iter().filter_map(|lock| lock.leader).for_each(|leader| shares[leader] += 1);
        shares
    }

    /// The number of terms that began beside another term of their lock.
    pub(super) fn overlaps(&self) -> usize {
        self.locks().overlaps
    }

    /// Takes all gaps that have ended since the last call.
    pub(super) fn take_gaps(&self) -> Vec<Gap> {
        std::mem::take(&mut self.locks().gaps)
    }

    fn locks(&self) -> MutexGuard<'_, Locks> {
        self.0.lock().expect("no panic under the lock")
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        let cause = *self.cause.lock().expect("no panic under the lock");
        let mut locks = self.watch.locks();
        let lock = &mut locks.locks[self.lock];
        (lock.leader, lock.left) = (None, Some((Instant::now(), cause)));
        locks.led -= 1;
    }
}
