//! The pauses between writes that reach too few parts (M7): those of writes that reach none (rule 6).

use std::future::pending;

use leaderelection::{DefaultLeaderElector, Elector, Majority, MemoryStore, StoreErrorKind};
use tokio::time::sleep;

use super::slow::parts;
use crate::support::{Fault, Journal, LEASE, Op, RETRY, builder};

/// Returns the calls of the busiest part in a lease, by a candidate or a leader that needs so many parts while each part
/// answers its writes like this, and the calls in the two leases after that.
async fn calls(needed: usize, faults: [Option<Fault>; 3], leads: bool) -> [usize; 2] {
    let stores = <[MemoryStore; 3]>::default();
    let parts = parts(&stores, "a", 3);
    let lock = Majority::of(parts.clone()).unwrap().needing(needed).unwrap();
    let config = builder(lock, Journal::default().callbacks()).release_on_cancel(true).build().unwrap();
    let elector = DefaultLeaderElector::new(config);
    let handle = elector.handle();
    let campaign = tokio::spawn(async move { elector.campaign(pending()).await });
    if leads {
        sleep(RETRY * 3 + RETRY / 2).await;
        assert!(handle.is_leader());
    }
    for (part, fault) in parts.iter().zip(faults) {
        for (op, fault) in [Op::Create, Op::Update].into_iter().zip([fault, fault]) {
            fault.into_iter().for_each(|fault| drop(part.lock.clone().with_every(op, fault)));
        }
        part.lock.take_ops();
    }
    let busiest = || parts.iter().map(|part| part.lock.take_ops().len()).max().unwrap();
    sleep(LEASE).await;
    let first = busiest();
    sleep(LEASE * 2).await;
    let then = busiest();
    assert!(!handle.is_leader(), "{needed} {faults:?}");
    campaign.abort();
    [first, then]
}

/// A write of its own changes what the writer reads. That is no progress.
#[tokio::test(start_paused = true)]
async fn writes_to_too_few_parts_back_off_like_those_to_none() {
    let refused = Some(Fault::Refuse(StoreErrorKind::Ambiguous));
    let doubted = Some(Fault::ApplyThen(StoreErrorKind::Ambiguous));
    for (needed, reached) in [(2, 1), (3, 1), (3, 2)] {
        for leads in [false, true] {
            let none = calls(needed, [refused; 3], leads).await;
            for answer in [None, doubted, Some(Fault::ApplyThen(StoreErrorKind::Rejected))] {
                let faults = [0, 1, 2].map(|part| if part < reached { answer } else { refused });
                let some = calls(needed, faults, leads).await;
                let is_quick = some.iter().zip(none).any(|(some, none)| *some > none * 2);
                assert!(!is_quick, "{needed} {leads} {faults:?}: {some:?} calls, and {none:?} if no part is reached");
            }
        }
    }
}
