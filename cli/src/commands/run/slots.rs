//! `--slots`: one of several numbered locks, led through a session.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use leaderelection::admin::Target;
use leaderelection::implement::ConditionalStore;
use leaderelection::lock::{Bounded, TimeLimit};
use leaderelection::sessions::Slots;
use leaderelection::{
    ElectionError, LeaderHandle, LockError, ObjectStoreBasedLock as _, RunError, Session, TermEndReason, Timings,
};
use tokio_util::sync::CancellationToken;

use super::first_read::Held;
use super::work::Job;
use crate::args::election::{ElectionArgs, RequireProbe};
use crate::exit::Failure;
use crate::lock::{Lock, LockUrl};

/// The name of the slots under the prefix.
const NAME: &str = "slot";

/// The longest pause between two polls of all slots. The slots are few.
const SCAN_INTERVAL: Duration = Duration::from_secs(30);

/// The reason for which the last term ended, if there was a term; or the reason for which none was possible.
pub(super) type TermEnd = Result<Option<TermEndReason>, ElectionError>;

/// The slots that this process competes for.
pub(super) struct Numbered {
    session: Session,
    slots: Slots,
    count: u32,
    lease: Duration,
}

impl Numbered {
    pub(super) fn new(
        lock: &Lock,
        count: u32,
        timings: Timings,
        (args, probe): (&ElectionArgs, &RequireProbe),
    ) -> Result<Self, Failure> {
        let builder = Session::builder(lock.store().clone(), lock.key(), lock.identity())
            .timings(timings)
            .scan_interval(SCAN_INTERVAL.min(timings.lease_duration()));
        let session = args.of_session(builder, probe).build()?;
        let slots = session.slots(NAME, count)?;
        Ok(Self { session, slots, count, lease: timings.lease_duration() })
    }

    pub(super) fn handles(&self) -> Vec<LeaderHandle> {
        (0..self.count).filter_map(|slot| self.slots.handle(slot)).collect()
    }

    /// Holds a slot for one term, or for one term after the other.
    pub(super) async fn run(&self, job: &Arc<Job>) -> TermEnd {
        let over = CancellationToken::new();
        let terms = async {
            let end = loop {
                let end = self.term(job).await;
                let goes_on = job.again && !job.shutdown.is_cancelled();
                let reason = end.as_ref().ok().and_then(Option::as_ref).filter(|_| goes_on);
                let Some(reason) = reason else { break end };
                if reason.cools_down() || *reason == TermEndReason::WorkFinished {
                    // The others go first.
                    let _ = tokio::time::timeout(self.lease, job.shutdown.cancelled()).await;
                }
            };
            over.cancel();
            end
        };
        let (session, end) = tokio::join!(self.session.run(over.clone().cancelled_owned()), terms);
        session?;
        end
    }

    async fn term(&self, job: &Arc<Job>) -> TermEnd {
        let (job, shutdown) = (Arc::clone(job), job.shutdown.clone());
        let work = move |slot: leaderelection::sessions::Slot| job.lead(slot.leadership().clone(), Some(slot.number()));
        match self.slots.run_while_leading(shutdown.cancelled_owned(), work).await {
            Ok(()) => Ok(Some(TermEndReason::WorkFinished)),
            Err(RunError::Lost { reason, .. }) => Ok(Some(reason)),
            Err(RunError::Election(unfit)) => Err(unfit),
            Err(_) => Ok(None),
        }
    }
}

/// The URLs of the slots' locks.
pub(super) fn urls(prefix: &LockUrl, lock: &Lock, count: u32) -> Vec<String> {
    targets(lock, lock.store(), count).map(|target| prefix.with_key(target.key()).to_string()).collect()
}

/// Returns the holders, if every slot is held by another process.
pub(super) async fn holders(lock: &Lock, count: u32, limit: &TimeLimit) -> Result<Option<Vec<Held>>, LockError> {
    let store: Arc<dyn ConditionalStore> = Arc::new(Bounded::new(lock.store().clone(), limit.clone()));
    let targets: Vec<Target> = targets(lock, &store, count).collect();
    let observed = try_join_all(targets.iter().map(Target::read)).await?;
    let held = observed.iter().map(|target| {
        let holder = target.holder().filter(|holder| *holder != lock.identity())?.to_owned();
        let leases = target.session.as_ref().and_then(|session| session.found.as_ref()).or(target.found.as_ref());
        let lease = leases.map(|found| found.record.lease_duration).unwrap_or_default();
        Some(Held { holder, lease, seen_for: Duration::ZERO })
    });
    Ok(held.collect())
}

fn targets(lock: &Lock, store: &Arc<dyn ConditionalStore>, count: u32) -> impl Iterator<Item = Target> {
    (0..count).map(|slot| Target::lock_of_sessions(Arc::clone(store), lock.key(), &format!("{NAME}/{slot}")))
}
