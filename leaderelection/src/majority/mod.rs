//! One lock made of several locks, of which a leader needs a majority.

mod incompatible_record;
mod notice;
pub mod parts;
pub mod plan;
pub mod view;
mod write;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, ready};
use futures_util::stream::FuturesUnordered;
use tokio_util::task::AbortOnDropHandle;

use crate::lock::record::LeaderElectionRecord;
use crate::lock::{LockError, ObjectStoreBasedLock, VersionedRecord};
use crate::store::{ConditionalStore, StoreErrorKind, Version};
use crate::timings::config_error::ConfigError;

use parts::PollAnswers;
use view::View;

/// The answer of a part, with the part's number.
type Answer<T> = BoxFuture<'static, (usize, Result<T, LockError>)>;

/// One lock made of several locks, its *parts*, such as buckets in three regions. A candidate leads while it holds a majority of the
/// parts, so the election continues while a minority is unavailable. Any two majorities have a part in common, so there is at most one
/// leader.
///
/// With [`both`](Self::both), a leader needs both of two locks. Use this in the second of three rollouts that move a service from an old
/// lock to a new one without a gap.
///
/// A `Majority` is a lock like any other: its elector has one [`Leadership`](crate::Leadership) with one fencing token, and the same
/// callbacks. It follows the rules M1 to M10 and M12 of the [protocol](crate::protocol):
///
/// - A candidate takes the parts one after the other, in the given order, and releases them if it cannot get enough. So every candidate
///   must name them in the same order.
/// - The fencing token is larger than that of every earlier term. A leader does not write a part whose token is above its own; the next
///   term may.
/// - After a leader has crashed, others wait for one lease, because the leases of all parts expire at the same time.
/// - A leader renews all parts at once, and waits only for as many answers as it needs. If a part was unavailable, the first renewal after
///   its answer writes it again.
///
/// Two candidates exclude each other only if they cannot get enough parts without a common one. So never run replicas that use only the
/// old lock at the same time as replicas that use only the new one. If all parts are needed, the log names a holder that leads with one
/// part alone, and reports an error if there are two such leaders.
///
/// Each read and each write of an elector becomes one request for each part. The elector's request timeout applies to all of them
/// together. A `Majority` belongs to one elector, and needs a tokio runtime. An operator changes all parts together with
/// `Target::of_parts` of [`admin`](crate::admin), or one part as a lock of its own. A
/// [store check](crate::LeaderElectionConfigBuilder::store_check) is not possible.
///
/// ```
/// use leaderelection::{LeaderCallbacks, LeaderElectionConfig, Majority, MemoryLock, MemoryStore, unique_identity};
///
/// let identity = unique_identity();
/// let buckets = ["a", "b", "c"].map(|key| MemoryLock::new(MemoryStore::new(), key, &identity));
/// let lock = Majority::of(buckets)?;
/// let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).build()?;
/// # Ok::<(), leaderelection::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct Majority {
    parts: Vec<Arc<dyn ObjectStoreBasedLock>>,
    view: Arc<Mutex<View>>,
    background: Mutex<Background>,
}

/// The tasks that wait for answers of parts after their call has returned. The next poll cancels them all.
#[derive(Debug, Default)]
struct Background {
    /// The reads of the last poll. The next write cancels them, too.
    poll: Option<AbortOnDropHandle<()>>,
    /// The reads that renewals have begun, of parts whose versions were unknown.
    reads: Vec<AbortOnDropHandle<()>>,
    writes: Writes,
}

/// The writes of a term in the background.
#[derive(Debug, Default)]
struct Writes {
    /// The writes of the last call.
    last: Option<AbortOnDropHandle<()>>,
    /// The writes of earlier calls. Only parts whose answers take longer than the time between renewals have some.
    earlier: Vec<AbortOnDropHandle<()>>,
}

impl Background {
    /// Prepares for a renewal, which cancels the poll, but not the other requests.
    fn renew(&mut self) {
        let Self { poll, reads, writes: Writes { last, earlier } } = self;
        *poll = None;
        reads.retain(|reads| !reads.is_finished());
        earlier.extend(last.take());
        earlier.retain(|writes| !writes.is_finished());
    }
}

impl Writes {
    fn is_empty(&self) -> bool {
        self.last.is_none() && self.earlier.is_empty()
    }

    /// Returns the next writes for which a release has to wait. Once the release is committed, it no longer waits for the earlier writes,
    /// because their parts were silent before the last renewal, and may be unavailable.
    fn pop(&mut self, is_committed: bool) -> Option<AbortOnDropHandle<()>> {
        self.last.take().or_else(|| self.earlier.pop().filter(|_| !is_committed))
    }
}

impl Majority {
    /// Joins these locks, of which a leader needs the smallest majority: two of three, three of five.
    ///
    /// # Errors
    ///
    /// There are no locks, or they have different identities.
    pub fn of<L: ObjectStoreBasedLock>(parts: impl IntoIterator<Item = L>) -> Result<Self, ConfigError> {
        let parts: Vec<_> = parts.into_iter().map(|part| Arc::new(part) as Arc<dyn ObjectStoreBasedLock>).collect();
        let quorum = parts.len() / 2 + 1;
        Self::new(parts, quorum)
    }

    /// Joins the lock of a service and the lock to which the service moves. A leader needs both. If you go back to the old
    /// lock, keep this order.
    ///
    /// # Errors
    ///
    /// The locks have different identities.
    pub fn both(old: impl ObjectStoreBasedLock, new: impl ObjectStoreBasedLock) -> Result<Self, ConfigError> {
        Self::new(vec![Arc::new(old), Arc::new(new)], 2)
    }

    /// Sets the number of parts that a leader needs. In the second of three rollouts from one lock to three, a leader
    /// needs all three.
    ///
    /// # Errors
    ///
    /// The number is not a majority of the parts, or is larger than the number of parts.
    pub fn needing(self, parts: usize) -> Result<Self, ConfigError> {
        Self::new(self.parts, parts)
    }

    fn new(parts: Vec<Arc<dyn ObjectStoreBasedLock>>, quorum: usize) -> Result<Self, ConfigError> {
        let identities: BTreeSet<_> = parts.iter().map(|part| part.identity()).collect();
        let [identity] = identities.iter().copied().collect::<Vec<_>>()[..] else {
            let problem =
                format!("({identities:?}) must be the same for all locks, of which there must be one at least");
            return Err(ConfigError::new("identity", problem));
        };
        let size = parts.len();
        if quorum > size {
            let problem =
                format!("({quorum}) is more than the number of locks ({size}); name more locks, or a smaller number");
            return Err(ConfigError::new("needed", problem));
        }
        let least = size / 2 + 1;
        if quorum < least {
            let choice = if least == size { format!("{size}") } else { format!("from {least} to {size}") };
            let problem = format!("({quorum}) must be {choice}: more than half of the locks ({size})");
            return Err(ConfigError::new("needed", problem));
        }
        let names = parts.iter().map(|part| part.describe()).collect();
        let view = Arc::new(Mutex::new(View::new(identity, names, quorum)));
        Ok(Self { parts, view, background: Mutex::default() })
    }

    fn view(&self) -> MutexGuard<'_, View> {
        locked(&self.view)
    }

    fn read(&self, part: usize) -> Answer<Option<VersionedRecord>> {
        let lock = Arc::clone(&self.parts[part]);
        Box::pin(async move { (part, lock.get().await) })
    }

    /// Until the next call, waits for the other answers to a poll. They show which parts are not silent.
    fn take_late_answers(&self, answers: FuturesUnordered<Answer<Option<VersionedRecord>>>) {
        if answers.is_empty() {
            return;
        }
        let view = Arc::clone(&self.view);
        let late = answers.for_each(move |(part, _)| {
            locked(&view).has_answered(part);
            ready(())
        });
        locked(&self.background).poll = Some(AbortOnDropHandle::new(tokio::spawn(late)));
    }
}

/// Locks a mutex even if a thread has panicked while it held the lock: no step leaves the value half changed.
fn locked<T: ?Sized>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl ObjectStoreBasedLock for Majority {
    async fn get(&self) -> Result<Option<VersionedRecord>, LockError> {
        *locked(&self.background) = Background::default();
        self.view().all_have_ended();
        let mut answers: FuturesUnordered<_> = (0..self.parts.len()).map(|part| self.read(part)).collect();
        let (mut polled, mut errors, mut awaited) = (PollAnswers::new(), Vec::new(), self.view().begin_poll());
        while let Some((part, answer)) = answers.next().await {
            awaited.remove(&part);
            let mut view = self.view();
            view.has_answered(part);
            match answer {
                Ok(found) => {
                    polled.insert(part, found);
                }
                Err(error) => errors.push((part, error)),
            }
            if view.is_enough(&polled, !awaited.is_empty()) {
                break;
            }
        }
        self.view().end_poll(&awaited);
        self.take_late_answers(answers);
        // An unreadable object comes first, because it ends a term; other errors do not.
        let error = errors.into_iter().min_by_key(|(part, error)| (error.kind() != StoreErrorKind::Unreadable, *part));
        if let Some((_, error)) = error.filter(|_| polled.len() < self.view().quorum.needed()) {
            return Err(error);
        }
        let (shown, notice) = self.view().observe(&polled)?;
        if let Some(notice) = notice {
            notice.log(&self.view().names);
        }
        Ok(shown)
    }

    async fn create(&self, record: &LeaderElectionRecord) -> Result<Version, LockError> {
        self.write(record, None).await
    }

    async fn update(&self, record: &LeaderElectionRecord, expected: &Version) -> Result<Version, LockError> {
        self.write(record, Some(expected)).await
    }

    fn identity(&self) -> &str {
        self.parts.first().map_or("", |part| part.identity())
    }

    fn describe(&self) -> String {
        self.view().describe()
    }

    fn objects(&self) -> Vec<(Arc<dyn ConditionalStore>, String)> {
        self.parts.iter().flat_map(|part| part.objects()).collect()
    }

    fn parts_left_out(&self) -> Option<usize> {
        Some(self.view().quorum.left_out())
    }

    fn max_lease_duration(&self) -> Duration {
        self.parts.iter().map(|part| part.max_lease_duration()).min().unwrap_or_default()
    }
}
