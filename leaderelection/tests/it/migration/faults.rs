//! Writes that stop between their halves (M7).

use leaderelection::{Migration, StoreErrorKind};
use tokio::time::sleep;

use super::{Stores, run, single};
use crate::support::{Fault, Journal, LEASE, Op, RETRY, builder};

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
                let (handle, _cancel, _run) = run(builder(Migration::new(old, new).unwrap(), journal.callbacks()));
                let (other, _other, _run) = run(stores.both("b", &journal));
                sleep(LEASE * 4).await;
                assert_eq!(handle.fencing_token(), Some(0), "{half} {nth} {fault:?}");
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
            let (handle, _cancel, _run) = run(builder(Migration::new(old, new).unwrap(), journal.callbacks()));
            // One request timeout, and one poll.
            sleep(RETRY * 4).await;
            assert!(handle.is_leader(), "{half} {fault:?}");
            let [old, new] = stores.records().await;
            assert_eq!(old, new);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_may_not_write_the_new_lock_gives_the_old_one_back() {
    let (stores, journal) = (Stores::default(), Journal::default());
    let mut halves = stores.halves("a", &journal);
    halves[1].lock = halves[1].lock.clone().with_every(Op::Create, Fault::Refuse(StoreErrorKind::Fatal));
    let [old, new] = halves;
    let (handle, _cancel, _run) = run(builder(Migration::new(old, new).unwrap(), journal.callbacks()));
    sleep(RETRY).await;
    let (other, _other, _run) = run(single(&stores.old, "x", &journal));
    sleep(RETRY * 3).await;
    assert_eq!(other.fencing_token(), Some(1));
    sleep(LEASE * 20).await;
    assert!(other.is_leader() && !handle.is_leader());
}
