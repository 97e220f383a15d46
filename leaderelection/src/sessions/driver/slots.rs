//! A numbered semaphore for the processes of a fleet: each holds at most one slot.

use std::sync::{Arc, OnceLock};

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio_util::sync::CancellationToken;

use super::candidate::SessionElector;
use super::session::Session;
use crate::elector::{ElectionError, Elector, RunError};
use crate::handle::status::LeaderHandle;
use crate::leadership::Leadership;
use crate::timings::config_error::ConfigError;
use crate::util::stop::stop_by;
use crate::util::sync::Mutex;

/// Lets n processes of a fleet lead at a time, each in a slot with a number from 0 to n − 1. A process holds at most one slot,
/// and no slot has two holders.
///
/// Use it for n workers at a time, or for numbered replicas. Slot 2 of the slots `worker` is the lock `worker/2` of the
/// session, so each slot has its own fencing tokens. Processes may set different n: a process with n = 3 competes for
/// the slots 0 to 2 only.
///
/// ```
/// use leaderelection::{CancellationToken, MemoryStore, Session, unique_identity};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let session = Session::builder(MemoryStore::new(), "fleet", unique_identity()).build()?;
/// let slots = session.slots("worker", 3)?;
/// let shutdown = CancellationToken::new();
/// let stop = shutdown.clone();
/// let work = slots.run_while_leading(shutdown.clone().cancelled_owned(), move |slot| async move {
///     println!("worker {} of 3", slot.number());
///     stop.cancel();
/// });
/// let (ended, output) = tokio::join!(session.run(shutdown.cancelled_owned()), work);
/// ended?;
/// output?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Slots {
    electors: Vec<SessionElector>,
    run_lock: tokio::sync::Mutex<()>,
}

/// A slot that this process holds.
#[derive(Clone, Debug)]
pub struct Slot {
    number: u32,
    leadership: Leadership,
}

impl Slot {
    /// The number of the slot, from 0 on.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The leadership of the slot's lock, with the fencing token.
    #[must_use]
    pub fn leadership(&self) -> &Leadership {
        &self.leadership
    }
}

impl Session {
    /// Returns the slots `NAME/0` to `NAME/(count − 1)`.
    ///
    /// # Errors
    ///
    /// If `count` is zero, if the session has an elector for one of these locks already, or if the name is invalid.
    pub fn slots(&self, name: &str, count: u32) -> Result<Slots, ConfigError> {
        if count == 0 {
            return Err(ConfigError::new("slots", "(0) must be at least 1"));
        }
        let elector = |slot| self.elector(format!("{name}/{slot}"), ());
        let electors = (0..count).map(elector).collect::<Result<_, _>>();
        let electors = electors.map_err(|error| ConfigError::new("slots", format!("({name:?}): {error}")))?;
        Ok(Slots { electors, run_lock: tokio::sync::Mutex::new(()) })
    }
}

impl Slots {
    /// Returns a handle that shows who holds a slot; `None` if no slot has this number.
    #[must_use]
    pub fn handle(&self, number: u32) -> Option<LeaderHandle> {
        self.electors.get(usize::try_from(number).ok()?).map(Elector::handle)
    }

    /// Acquires a slot, runs `work` on a task of its own, releases the slot, and returns the output, as
    /// [`Elector::run_while_leading`] does. Of the free slots, the one with the smallest number is tried first.
    ///
    /// A second call fails while the first is running. Dropping the future ends leadership of the slot at once, drops the
    /// work, and releases the slot.
    ///
    /// # Errors
    ///
    /// [`RunError::Cancelled`] or [`RunError::Election`] if `work` was never started; [`RunError::Lost`] if the slot was
    /// lost before `work` was complete, if `work` panicked, or if `work` did not stop in time.
    pub async fn run_while_leading<F, W, T>(
        &self,
        shutdown: impl Future<Output = ()> + Send + 'static,
        work: F,
    ) -> Result<T, RunError>
    where
        F: FnOnce(Slot) -> W + Send + 'static,
        W: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let _guard = self.run_lock.try_lock().map_err(|_| ElectionError::AlreadyRunning)?;
        let cancel = CancellationToken::new();
        stop_by(shutdown, &cancel, self.win(&cancel, work)).await
    }

    async fn win<F, W, T>(&self, cancel: &CancellationToken, work: F) -> Result<T, RunError>
    where
        F: FnOnce(Slot) -> W + Send + 'static,
        W: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        // Each candidacy has its own token, so that the first to acquire a slot can cancel all others and continue.
        let candidacies: Vec<_> = self.electors.iter().map(|_| cancel.child_token()).collect();
        // The work until a slot is acquired, and the number of that slot afterwards.
        let first = Arc::new((Mutex::new(Some(work)), OnceLock::new()));
        let mut ends = FuturesUnordered::new();
        for (number, elector) in (0..).zip(&self.electors) {
            let (first, others) = (Arc::clone(&first), candidacies.clone());
            let candidacy = candidacies[number as usize].clone();
            let work = move |leadership: Leadership| {
                // Two slots may be acquired at the same moment on two threads. The mutex gives the work to one of them.
                let work = first.0.lock().take();
                if work.is_some() {
                    first.1.get_or_init(|| number);
                    let others = (0..).zip(others).filter(|(other, _)| *other != number);
                    others.for_each(|(_, candidacy)| candidacy.cancel());
                }
                let work = work.map(|work| work(Slot { number, leadership }));
                // A second slot finds no work, so it is released at once.
                async move { Some(work?.await) }
            };
            let before = self.electors.iter().take(number as usize).map(Elector::handle).collect();
            let pause = elector.wait_retry_periods(number);
            ends.push(async move {
                // Each slot is tried one retry period after the one before it, so that rarely more than one is acquired. If others hold
                // all slots before it, there is nothing to wait for.
                tokio::select! {
                    biased;
                    () = candidacy.cancelled() => {}
                    () = all_held_by_others(before) => {}
                    () = pause => {}
                }
                (number, elector.run_while_leading(candidacy.cancelled_owned(), work).await)
            });
        }
        let mut outcome = Err(RunError::Cancelled);
        while let Some((number, end)) = ends.next().await {
            match end {
                Err(error @ RunError::Election(_)) => {
                    candidacies.iter().for_each(CancellationToken::cancel);
                    outcome = Err(error);
                }
                end if first.1.get() == Some(&number) => {
                    outcome = end.and_then(|output| output.ok_or(RunError::Cancelled));
                }
                _ => {}
            }
        }
        outcome
    }
}

/// Completes when other processes hold all these slots.
async fn all_held_by_others(slots: Vec<LeaderHandle>) {
    for mut slot in slots {
        while slot.leader().is_none_or(|leader| leader == slot.identity()) {
            if slot.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}
