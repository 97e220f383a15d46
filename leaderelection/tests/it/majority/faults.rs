//! Writes that stop between their halves (M7).

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use async_trait::async_trait;
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::lock::JobOutcome;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderElectionRecord, LockError, Majority, ObjectStoreBasedLock, StoreErrorKind,
};
use tokio::time::{Instant, sleep};

use super::{Half, SPREAD, Stores, run, single};
use crate::support::{self, DEADLINE, Fault, Journal, LEASE, Op, RETRY, TestLock, builder, plant, stored};

const FAULTS: [Fault; 8] = [
    Fault::Refuse(StoreErrorKind::Ambiguous),
    Fault::Refuse(StoreErrorKind::Rejected),
    Fault::Refuse(StoreErrorKind::Conflict),
    Fault::ApplyThen(StoreErrorKind::Ambiguous),
    Fault::ApplyThen(StoreErrorKind::Rejected),
    Fault::ApplyThen(StoreErrorKind::Conflict),
    Fault::Hang,
    Fault::ApplyThenHang,
];

#[tokio::test(start_paused = true)]
async fn no_fault_of_half_a_renewal_ends_a_term() {
    for half in [0, 1] {
        for nth in [0, 1] {
            for fault in FAULTS {
                let (stores, journal) = (Stores::default(), Journal::default());
                let mut halves = stores.halves("a", &journal);
                halves[half].lock = halves[half].lock.clone().with_fault(Op::Update, nth, fault);
                let [old, new] = halves;
                let (handle, _cancel, _run) = run(builder(Majority::both(old, new).unwrap(), journal.callbacks()));
                let (other, _other, _run) = run(stores.both("b", &journal));
                sleep(LEASE * 4).await;
                assert_eq!(handle.fencing_token(), Some(1.into()), "{half} {nth} {fault:?}");
                assert!(!other.is_leader());
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn half_a_takeover_is_made_whole_by_its_candidate() {
    for half in [0, 1] {
        for fault in FAULTS {
            let (stores, journal) = (Stores::default(), Journal::default());
            let mut halves = stores.halves("a", &journal);
            halves[half].lock = halves[half].lock.clone().with_fault(Op::Create, 0, fault);
            let [old, new] = halves;
            let (handle, _cancel, _run) = run(builder(Majority::both(old, new).unwrap(), journal.callbacks()));
            // One request timeout, and one poll.
            sleep(RETRY * 4).await;
            assert!(handle.is_leader(), "{half} {fault:?}");
            let [old, new] = stores.records().await;
            assert_eq!(old, new);
        }
    }
}

/// A lock that another candidate takes just before it is written for the first time.
#[derive(Debug)]
struct TakenBefore {
    lock: TestLock,
    by: TestLock,
    is_taken: AtomicBool,
}

#[async_trait]
impl ObjectStoreBasedLock for TakenBefore {
    async fn get(&self) -> Result<Option<VersionedRecord>, LockError> {
        self.lock.get().await
    }

    async fn create(&self, record: &LeaderElectionRecord) -> Result<Version, LockError> {
        if !self.is_taken.swap(true, Relaxed) {
            self.by.create(&support::record(self.by.identity(), LEASE, 0)).await?;
        }
        self.lock.create(record).await
    }

    async fn update(&self, record: &LeaderElectionRecord, expected: &Version) -> Result<Version, LockError> {
        self.lock.update(record, expected).await
    }

    fn identity(&self) -> &str {
        self.lock.identity()
    }

    fn describe(&self) -> String {
        self.lock.describe()
    }
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_loses_the_new_lock_gives_the_old_one_back() {
    let (stores, journal) = (Stores::default(), Journal::default());
    let [old, Half { lock, .. }] = stores.halves("a", &journal);
    let new = TakenBefore { lock, by: TestLock::new(&stores.new, "n"), is_taken: AtomicBool::new(false) };
    let (handle, _cancel, _run) = run(builder(Majority::both(old, new).unwrap(), journal.callbacks()));
    sleep(RETRY).await;
    let [old, new] = stores.records().await;
    assert_eq!((old.holder_identity.as_str(), new.holder_identity.as_str()), ("", "n"));
    // "n" never renews.
    sleep(LEASE + SPREAD + RETRY * 3).await;
    assert_eq!(handle.fencing_token(), Some((old.leader_transitions + 1).into()));
}

/// The store may carry the give-back out at any later moment, when its candidate would lead. Whoever uses the old lock alone
/// would lead beside it.
#[tokio::test(start_paused = true)]
async fn a_write_whose_half_is_rolled_back_gives_nothing() {
    let (stores, journal) = (Stores::default(), Journal::default());
    let [mut old, mut new] = stores.halves("a", &journal);
    // The second write is a renewal if the first one counts.
    old.lock = old.lock.with_fault(Op::Update, 0, Fault::Hang).with_fault(Op::Update, 1, Fault::Hang);
    new.lock = new.lock.with_fault(Op::Create, 0, Fault::ApplyThen(StoreErrorKind::Conflict));
    let (handle, _cancel, _run) = run(builder(Majority::both(old, new).unwrap(), journal.callbacks()));
    sleep(RETRY / 20).await;
    let rolled_back = stores.records().await.map(|record| record.write_id);
    assert!(rolled_back[0] == rolled_back[1] && !handle.is_leader());
    for _ in 0..200 {
        sleep(RETRY / 20).await;
        if handle.is_leader() {
            return assert_ne!(stores.records().await.map(|record| record.write_id), rolled_back);
        }
    }
    panic!("no other write begins the term");
}

#[tokio::test(start_paused = true)]
async fn half_a_request_for_the_lease_leaves_the_leader_its_lock() {
    let faults = [
        Fault::Refuse(StoreErrorKind::Fatal),
        Fault::Refuse(StoreErrorKind::Conflict),
        Fault::ApplyThen(StoreErrorKind::Conflict),
    ];
    for fault in faults {
        let (stores, journal) = (Stores::default(), Journal::default());
        let (leads, _cancel, _run) = run(stores.both("a", &journal).rank(1));
        sleep(RETRY * 3).await;
        let mut halves = stores.halves("b", &journal);
        halves[1].lock = halves[1].lock.clone().with_fault(Op::Update, 0, fault);
        let [old, new] = halves;
        let asks = builder(Majority::both(old, new).unwrap(), journal.callbacks()).failback(true);
        let (_handle, _cancel, _run) = run(asks);
        while stored(&stores.old).await.record.preferred_holder.is_none() {
            sleep(RETRY / 20).await;
        }
        for _ in 0..200 {
            let [old, _] = stores.records().await;
            assert!(old.holder_identity == "a" || !leads.is_leader(), "{fault:?}: {old:?} while the leader leads");
            sleep(RETRY / 20).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_may_not_write_the_new_lock_gives_the_old_one_back() {
    let (stores, journal) = (Stores::default(), Journal::default());
    let mut halves = stores.halves("a", &journal);
    halves[1].lock = halves[1].lock.clone().with_every(Op::Create, Fault::Refuse(StoreErrorKind::Fatal));
    let [old, new] = halves;
    let (handle, _cancel, _run) = run(builder(Majority::both(old, new).unwrap(), journal.callbacks()));
    sleep(RETRY).await;
    let (other, _other, _run) = run(single(&stores.old, "x", &journal));
    sleep(RETRY * 3).await;
    assert_eq!(other.fencing_token(), Some(2.into()));
    sleep(LEASE * 20).await;
    assert!(other.is_leader() && !handle.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_candidate_rolls_half_back_after_its_restart() {
    let (stores, journal) = (Stores::default(), Journal::default());
    for store in [&stores.old, &stores.new] {
        plant(store, &support::record("a", LEASE, 3)).await;
    }
    let mut halves = stores.halves("a", &journal);
    halves[1].lock = halves[1].lock.clone().with_every(Op::Update, Fault::Refuse(StoreErrorKind::Fatal));
    let [old, new] = halves;
    let (_handle, _cancel, _run) = run(builder(Majority::both(old, new).unwrap(), journal.callbacks()));
    sleep(LEASE + SPREAD + RETRY).await;
    let [old, new] = stores.records().await;
    assert_eq!((old.holder_identity.as_str(), old.leader_transitions, new.leader_transitions), ("", 4, 3));
}

/// Only the new lock has the mark of the job when the release is given up.
#[tokio::test(start_paused = true)]
async fn half_a_release_keeps_its_mark() {
    let (stores, journal) = (Stores::default(), Journal::default());
    let halves = stores.halves("a", &journal);
    let [old, new] = halves.clone();
    let config = builder(Majority::both(old, new).unwrap(), journal.callbacks());
    let elector = DefaultLeaderElector::new(config.build().unwrap());
    let [job, other] = ["job", "another"].map(|job| job.parse().unwrap());
    let old = halves[0].lock.clone();
    let work = move |_| async move {
        old.set_outage(Some(Fault::Refuse(StoreErrorKind::Ambiguous)));
        Ok::<(), ()>(())
    };
    let outcome = elector.run_once(pending(), &job, work).await.unwrap();
    assert_eq!(outcome, JobOutcome::Unmarked(()));
    let [before, after] = stores.records().await;
    assert!(!before.is_done(&job) && after.is_done(&job), "half a release: {before:?} {after:?}");
    halves[0].lock.set_outage(None);

    let again = elector.run_once(pending(), &job, |_| async { Ok::<(), ()>(()) }).await.unwrap();
    assert_eq!(again, JobOutcome::AlreadyDone);
    elector.run_once(pending(), &other, |_| async { Ok::<(), ()>(()) }).await.unwrap();
    for record in stores.records().await {
        assert!(record.is_done(&job) && record.is_done(&other), "{record:?}");
    }
}

/// A leader that is cut off from the old lock gives the new one back at its deadline.
///
/// A leader that is cut off from the new lock renews half of its lease until then.
#[tokio::test(start_paused = true)]
async fn a_lock_that_is_rolled_back_alone_begins_no_lease_anew() {
    for (half, longest) in [(0, LEASE), (1, DEADLINE + LEASE)] {
        let (took, entries) = takeover_after_a_cut_off(half).await;
        assert!(took <= longest + RETRY * 11 / 5 + SPREAD, "{half}: {took:?}");
        let place = |wanted: &str| entries.iter().position(|entry| entry == wanted);
        // Otherwise the leader gave nothing back.
        assert!(place("new released").is_some() && place("new released") < place("start 2"), "{entries:?}");
    }
}

/// Returns the time from the cut-off of a leader from one of the locks to the next term, and the journal of both.
async fn takeover_after_a_cut_off(half: usize) -> (Duration, Vec<String>) {
    let (stores, journal) = (Stores::default(), Journal::default());
    let halves = stores.halves("a", &journal);
    let [old, new] = halves.clone();
    let leader = builder(Majority::both(old, new).unwrap(), journal.callbacks()).release_on_cancel(true);
    let (leads, _cancel, _run) = run(leader);
    let (mut handle, _cancel, _run) = run(stores.both("b", &journal));
    sleep(RETRY * 10).await;
    assert!(leads.is_leader());
    let cut_off = Instant::now();
    halves[half].lock.set_outage(Some(Fault::Hang));
    while !handle.is_leader() {
        handle.changed().await.unwrap();
    }
    assert!(!leads.is_leader());
    (cut_off.elapsed(), journal.entries())
}
