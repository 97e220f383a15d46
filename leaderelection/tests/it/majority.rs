//! One lock made of several: rules M1 to M10.

mod background;
mod claims;
mod faults;
mod former;
mod incompatible_records;
mod marks;
mod pace;
mod phases;
mod released;
mod requests;
mod slow;
mod three;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderElectionConfigBuilder, LeaderElectionRecord, LeaderHandle, LockError,
    Majority, MemoryStore, ObjectStoreBasedLock, RunOutcome, TermEndReason,
};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::support::{DEADLINE, Journal, LEASE, RETRY, TestLock, builder, plant, record, spawn_run, stored};

/// The longest time from the expiry of a lease to the next term: the spread of takeovers.
const SPREAD: Duration = Duration::from_millis(200);

/// One of the two locks, whose writes are in a journal.
#[derive(Clone, Debug)]
struct Half {
    name: &'static str,
    lock: TestLock,
    journal: Journal,
}

impl Half {
    fn note(&self, record: &LeaderElectionRecord) {
        let what = if record.is_released() { "released" } else { "taken" };
        let entry = format!("{} {what}", self.name);
        // Renewals would fill the journal.
        if !self.journal.entries().contains(&entry) {
            self.journal.write(entry);
        }
    }
}

#[async_trait]
impl ObjectStoreBasedLock for Half {
    async fn get(&self) -> Result<Option<VersionedRecord>, LockError> {
        self.lock.get().await
    }

    async fn create(&self, record: &LeaderElectionRecord) -> Result<Version, LockError> {
        self.note(record);
        self.lock.create(record).await
    }

    async fn update(&self, record: &LeaderElectionRecord, expected: &Version) -> Result<Version, LockError> {
        self.note(record);
        self.lock.update(record, expected).await
    }

    fn identity(&self) -> &str {
        self.lock.identity()
    }

    fn describe(&self) -> String {
        format!("{}:lock", self.name)
    }
}

/// The stores of both locks.
#[derive(Clone, Debug, Default)]
struct Stores {
    old: MemoryStore,
    new: MemoryStore,
}

impl Stores {
    /// The locks of one candidate, before they are joined.
    fn halves(&self, identity: &str, journal: &Journal) -> [Half; 2] {
        [("old", &self.old), ("new", &self.new)].map(|(name, store)| Half {
            name,
            lock: TestLock::new(store, identity),
            journal: journal.clone(),
        })
    }

    fn both(&self, identity: &str, journal: &Journal) -> LeaderElectionConfigBuilder {
        let [old, new] = self.halves(identity, journal);
        builder(Majority::both(old, new).unwrap(), journal.callbacks()).release_on_cancel(true)
    }

    async fn records(&self) -> [LeaderElectionRecord; 2] {
        [stored(&self.old).await.record, stored(&self.new).await.record]
    }
}

fn single(store: &MemoryStore, identity: &str, journal: &Journal) -> LeaderElectionConfigBuilder {
    builder(TestLock::new(store, identity), journal.callbacks()).release_on_cancel(true)
}

/// A candidate that runs for one term.
type Running = (LeaderHandle, CancellationToken, JoinHandle<RunOutcome>);

fn run(config: LeaderElectionConfigBuilder) -> Running {
    let elector = DefaultLeaderElector::new(config.build().unwrap());
    let handle = elector.handle();
    let (cancel, run) = spawn_run(elector);
    (handle, cancel, run)
}

#[test]
fn both_locks_have_one_identity() {
    let (stores, journal) = (Stores::default(), Journal::default());
    let ([old, _], [_, new]) = (stores.halves("a", &journal), stores.halves("b", &journal));
    assert_eq!(
        Majority::both(old, new).unwrap_err().to_string(),
        "identity ({\"a\", \"b\"}) must be the same for all locks, of which there must be one at least"
    );
}

#[tokio::test(start_paused = true)]
async fn leadership_is_one_write_in_both_locks_with_a_token_above_both() {
    for (old, new, token) in [(None, None, 1), (Some(41), None, 42), (None, Some(7), 8), (Some(3), Some(9), 10)] {
        let (stores, journal) = (Stores::default(), Journal::default());
        for (store, transitions) in [(&stores.old, old), (&stores.new, new)] {
            if let Some(transitions) = transitions {
                plant(store, &record("", Duration::from_secs(1), transitions)).await;
            }
        }
        let (handle, _cancel, _run) = run(stores.both("a", &journal));
        sleep(RETRY * 3).await;
        assert_eq!(handle.fencing_token(), Some((token).into()), "{old:?} {new:?}");
        let [old, new] = stores.records().await;
        assert_eq!(old, new);
        assert_eq!((old.holder_identity.as_str(), old.leader_transitions), ("a", token));
    }
}

#[tokio::test(start_paused = true)]
async fn the_old_lock_is_taken_first_and_released_last_after_the_work() {
    let (stores, journal) = (Stores::default(), Journal::default());
    let (_, cancel, run) = run(stores.both("a", &journal));
    sleep(RETRY * 3).await;
    cancel.cancel();
    assert_eq!(run.await.unwrap().fencing_token(), Some(1.into()));
    assert_eq!(
        journal.entries(),
        ["old taken", "new taken", "start 1", "work ended", "stop", "new released", "old released"]
    );
    assert!(stores.records().await.iter().all(LeaderElectionRecord::is_released));
}

#[tokio::test(start_paused = true)]
async fn a_crash_costs_one_lease() {
    let (stores, journal) = (Stores::default(), Journal::default());
    let (leads, _cancel, leader) = run(stores.both("a", &journal));
    sleep(RETRY * 3).await;
    let (mut handle, _cancel, _run) = run(stores.both("b", &journal));
    sleep(RETRY * 10).await;
    leader.abort();
    let crashed = tokio::time::Instant::now();
    while !handle.is_leader() {
        handle.changed().await.unwrap();
    }
    // The follower saw the last renewal up to one poll after the renewal, and the crash came later than the renewal.
    let took = crashed.elapsed();
    assert!(took <= LEASE + RETRY * 11 / 5 + SPREAD, "{took:?}");
    assert!(took > LEASE - RETRY - SPREAD, "{took:?}");
    assert!(!leads.is_leader());
    assert_eq!(handle.fencing_token(), Some(2.into()));
}

/// Renewals are sent at whole retry periods, and every request is answered at once.
#[tokio::test(start_paused = true)]
async fn leadership_ends_at_the_deadline_of_the_lock_that_does_not_answer() {
    for cut_off in [0, 1] {
        let (stores, journal) = (Stores::default(), Journal::default());
        let halves = stores.halves("a", &journal);
        let [old, new] = halves.clone();
        let (handle, _cancel, run) = run(builder(Majority::both(old, new).unwrap(), journal.callbacks()));
        sleep(RETRY * 2 + RETRY / 2).await;
        halves[cut_off].lock.set_outage(Some(crate::support::Fault::Hang));
        sleep(DEADLINE - RETRY / 2 - SPREAD).await;
        assert!(handle.is_leader(), "{cut_off}");
        sleep(SPREAD * 2).await;
        assert!(!handle.is_leader(), "{cut_off}");
        assert_eq!(run.await.unwrap().reason().unwrap().name(), "renew_deadline");
    }
}

#[tokio::test(start_paused = true)]
async fn leadership_ends_with_the_loss_of_either_lock() {
    let taken = (record("x", LEASE, 5), TermEndReason::TakenOver { by: "x".to_owned() });
    let emptied = (record("", LEASE, 1), TermEndReason::Emptied);
    for (lost, reason) in [taken, emptied] {
        for half in [0, 1] {
            let (stores, journal) = (Stores::default(), Journal::default());
            let (_handle, _cancel, run) = run(stores.both("a", &journal));
            sleep(RETRY * 3).await;
            plant(if half == 0 { &stores.old } else { &stores.new }, &lost).await;
            let outcome = timeout(LEASE * 4, run).await.expect("the term ends").unwrap();
            assert_eq!(outcome.reason(), Some(&reason), "{half}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn marks_of_jobs_in_either_lock_are_kept_in_both() {
    let (stores, journal) = (Stores::default(), Journal::default());
    for (store, job) in [(&stores.old, "monday"), (&stores.new, "tuesday")] {
        let elector = DefaultLeaderElector::new(single(store, "before", &journal).build().unwrap());
        let job = job.parse().unwrap();
        elector.run_once(pending(), &job, |_| async { Ok::<(), ()>(()) }).await.unwrap();
    }
    let elector = Arc::new(DefaultLeaderElector::new(stores.both("a", &journal).build().unwrap()));
    for (job, is_done) in [("monday", true), ("tuesday", true), ("wednesday", false)] {
        let job = job.parse().unwrap();
        let outcome = elector.run_once(pending(), &job, |_| async { Ok::<(), ()>(()) }).await.unwrap();
        assert_eq!(matches!(outcome, leaderelection::lock::JobOutcome::AlreadyDone), is_done, "{outcome:?}");
    }
    for record in stores.records().await {
        assert_eq!(record.completed_jobs().len(), 3, "{record:?}");
    }
}
