//! The last write of a candidate in one part, beside another's in a second one, while the third does not answer (M10): a leader may
//! lead yet, and a former leader does not.

use std::future::pending;
use std::time::Duration;

use leaderelection::lock::LockParts;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderHandle, Majority, MemoryStore, ObjectStoreBasedLock, StoreErrorKind,
};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::SPREAD;
use super::slow::{Part, parts, until_led};
use crate::support::{DEADLINE, Fault, Journal, LEASE, RETRY, builder, plant, record};

/// The longest time in which a candidate notices that a store answers again: a request that is given up, and a pause.
const NOTICED: Duration = Duration::from_millis(2500 + 2000 + 100);

/// A candidate for the majority of three parts.
struct Candidate {
    stores: [MemoryStore; 3],
    parts: [Part; 3],
    handle: LeaderHandle,
    _campaign: AbortOnDropHandle<()>,
}

impl Candidate {
    async fn that_leads() -> Self {
        let stores = <[MemoryStore; 3]>::default();
        let parts = parts(&stores, "a", 3);
        let lock = Majority::of(parts.clone()).unwrap();
        let elector = DefaultLeaderElector::new(builder(lock, Journal::default().callbacks()).build().unwrap());
        let handle = elector.handle();
        let campaign = async move { drop(elector.campaign(pending()).await) };
        let _campaign = AbortOnDropHandle::new(tokio::spawn(campaign));
        sleep(RETRY * 3).await;
        assert_eq!(handle.fencing_token(), Some(1.into()));
        Self { stores, parts, handle, _campaign }
    }

    /// Lets the second part show a term of this holder.
    async fn misses_a_term_of(&self, holder: &str, token: u64) {
        let mut other = record(holder, LEASE, token);
        other.parts = Some(LockParts::new(2, self.parts.iter().map(|part| part.describe()).collect(), token));
        plant(&self.stores[1], &other).await;
    }
}

/// Returns the time without a leader after an outage in which the leader has lost its term.
async fn gap(outage: Duration, fault: Fault, holder: &str, token: u64) -> Duration {
    let former = Candidate::that_leads().await;
    former.parts.iter().for_each(|part| part.lock.set_outage(Some(fault)));
    sleep(outage).await;
    assert!(!former.handle.is_leader());
    former.misses_a_term_of(holder, token).await;
    former.parts[..2].iter().for_each(|part| part.lock.set_outage(None));
    until_led(former.handle.clone()).await
}

#[tokio::test(start_paused = true)]
async fn a_former_leader_takes_what_is_free_as_soon_as_on_one_lock() {
    for fault in [Fault::Hang, Fault::Refuse(StoreErrorKind::Ambiguous)] {
        for outage in [DEADLINE, LEASE, LEASE * 2, LEASE * 4] {
            // The last has the part of an earlier life beside it, which a leader would write over.
            for (holder, token, waits) in
                [("", 1, Duration::ZERO), ("gone", 1, LEASE + SPREAD), ("gone", 0, LEASE + SPREAD)]
            {
                let gap = gap(outage + RETRY / 3, fault, holder, token).await;
                assert!(gap < waits + NOTICED, "{fault:?} {outage:?} {holder} {token}: {gap:?}");
            }
        }
    }
}

/// The half of a candidate that died says nothing of the part that does not answer for a while.
#[tokio::test(start_paused = true)]
async fn a_leader_waits_for_the_part_that_tells_whether_it_leads() {
    for holder in ["", "gone"] {
        let leader = Candidate::that_leads().await;
        leader.misses_a_term_of(holder, 1).await;
        leader.parts[2].lock.set_outage(Some(Fault::Refuse(StoreErrorKind::Ambiguous)));
        sleep(DEADLINE - RETRY * 2).await;
        leader.parts[2].lock.set_outage(None);
        sleep(LEASE * 2).await;
        assert_eq!(leader.handle.fencing_token(), Some(1.into()), "{holder}");
    }
}
