//! Candidates of one lock beside candidates of both.

use leaderelection::{Majority, MemoryStore, TermEndReason};
use tokio::time::{Instant, sleep};
use tracing::Level;

use super::{Running, Stores, run, single};
use crate::support::{DEADLINE, Fault, Journal, LEASE, RETRY, builder, logged, plant, record, stored};

/// The three rollouts, or the way back, of two replicas.
async fn walk(stores: &Stores, ends: [&MemoryStore; 2], first: u64) {
    let journal = Journal::default();
    let mut last = first;
    let mut next = async |mut handle: leaderelection::LeaderHandle, ended: Instant| {
        while !handle.is_leader() {
            handle.changed().await.unwrap();
        }
        assert!(ended.elapsed() <= RETRY * 11 / 5, "a gap of {:?}", ended.elapsed());
        let token = handle.fencing_token().unwrap();
        assert!(token > last.into(), "{token} after {last}");
        last = token.into();
    };
    let phases = [
        single(ends[0], "a1", &journal),
        single(ends[0], "b1", &journal),
        stores.both("a2", &journal),
        stores.both("b2", &journal),
        single(ends[1], "a3", &journal),
        single(ends[1], "b3", &journal),
    ];
    let mut runs: Vec<Running> = Vec::new();
    for config in phases {
        // There are never more than two replicas: the older one ends first.
        let ended = Instant::now();
        if runs.len() == 2 {
            let (handle, cancel, run) = runs.remove(0);
            let led = handle.is_leader();
            cancel.cancel();
            run.await.unwrap();
            if led {
                next(runs[0].0.clone(), ended).await;
            }
        }
        runs.push(run(config));
        sleep(LEASE * 2).await;
        assert_eq!(runs.iter().filter(|(handle, ..)| handle.is_leader()).count(), 1);
    }
    for (_, cancel, run) in runs {
        cancel.cancel();
        run.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_move_has_no_gap_and_no_token_goes_back() {
    let stores = Stores::default();
    plant(&stores.old, &record("", RETRY, 41)).await;
    walk(&stores, [&stores.old, &stores.new], 41).await;
    let there = stores.records().await;
    assert!(there[1].leader_transitions > there[0].leader_transitions && there[0].leader_transitions > 41, "{there:?}");
    // And the way back, with what the move has left in both locks.
    walk(&stores, [&stores.new, &stores.old], there[1].leader_transitions).await;
    let back = stores.records().await;
    assert!(back[0].leader_transitions > back[1].leader_transitions, "{back:?}");
}

#[test]
fn whoever_leads_on_one_lock_is_waited_for_and_named() {
    for is_old in [true, false] {
        let level = if is_old { Level::INFO } else { Level::WARN };
        let events = logged(level, async || {
            let (stores, journal) = (Stores::default(), Journal::default());
            let store = if is_old { &stores.old } else { &stores.new };
            let (_, cancel, leader) = run(single(store, "x", &journal));
            sleep(RETRY * 3).await;
            let (handle, _cancel, _run) = run(stores.both("a", &journal));
            sleep(LEASE * 10).await;
            assert_eq!((handle.is_leader(), handle.leader().as_deref()), (false, Some("x")));
            cancel.cancel();
            leader.await.unwrap();
            sleep(RETRY * 11 / 5).await;
            assert_eq!(handle.fencing_token(), Some(2.into()));
        });
        let told: Vec<_> = events.iter().filter(|event| event.contains("the leader holds only the")).collect();
        assert_eq!(told.len(), 1, "{events:?}");
        assert!(told[0].contains("leader=\"x\"") || told[0].contains("leader=x"), "{told:?}");
    }
}

#[test]
fn two_leaders_are_reported_once() {
    let events = logged(Level::ERROR, async || {
        let (stores, journal) = (Stores::default(), Journal::default());
        let (_, _old, _leader) = run(single(&stores.old, "x", &journal));
        let (_, _new, _other) = run(single(&stores.new, "y", &journal));
        sleep(RETRY * 3).await;
        let (handle, _cancel, _run) = run(stores.both("a", &journal));
        sleep(LEASE * 10).await;
        assert!(!handle.is_leader());
    });
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].contains("stop the replicas that use only one of the locks"), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn nobody_asks_a_leader_of_one_lock_for_the_lease() {
    for held in [0, 1] {
        let (stores, journal) = (Stores::default(), Journal::default());
        let store = if held == 0 { &stores.old } else { &stores.new };
        let (leads, _cancel, _run) = run(single(store, "x", &journal).rank(1));
        sleep(RETRY * 3).await;
        let (handle, _cancel, _run) = run(stores.both("b", &journal).failback(true));
        sleep(LEASE * 6).await;
        assert_eq!((leads.fencing_token(), handle.is_leader()), (Some(1.into()), false));
        assert_eq!(stored(store).await.record.preferred_holder, None);
    }
}

#[tokio::test(start_paused = true)]
async fn an_operators_release_of_one_lock_does_not_hide_the_lease_of_the_other() {
    for (emptied, asks) in [(0, false), (1, false), (0, true), (1, true)] {
        let (stores, journal) = (Stores::default(), Journal::default());
        let halves = stores.halves("a", &journal);
        let [old, new] = halves.clone();
        let leader = builder(Majority::both(old, new).unwrap(), journal.callbacks()).rank(asks.into());
        let (leads, _cancel, leader) = run(leader);
        sleep(RETRY * 3).await;
        let (handle, _cancel, _run) = run(stores.both("b", &journal).failback(asks));
        sleep(if asks { RETRY } else { RETRY * 10 }).await;
        while asks && stores.records().await.iter().any(|half| half.preferred_holder.is_none()) {
            sleep(RETRY / 20).await;
        }
        assert!(leads.is_leader());
        // The leader does not find out before its deadline, and the candidate polls several times until then.
        halves.iter().for_each(|half| half.lock.set_outage(Some(Fault::Hang)));
        sleep(DEADLINE / 2).await;
        let store = if emptied == 0 { &stores.old } else { &stores.new };
        plant(store, &record("", RETRY, 9)).await;
        while leads.is_leader() {
            assert!(!handle.is_leader(), "{emptied}");
            sleep(RETRY / 10).await;
        }
        assert_eq!(leader.await.unwrap().reason(), Some(&TermEndReason::RenewDeadline));
        sleep(LEASE + RETRY * 3).await;
        assert_eq!(handle.fencing_token(), Some(10.into()));
    }
}

/// An earlier process of the candidate wrote one lock and crashed before it gave the lock back. The leader of the other lock
/// has the lower token.
#[test]
fn a_half_of_an_earlier_life_hides_no_leader_and_is_no_duplicate() {
    for held in [0, 1] {
        for reclaims in [false, true] {
            let events = logged(Level::WARN, async || {
                let (stores, journal) = (Stores::default(), Journal::default());
                let [lost, store] = if held == 0 { [&stores.new, &stores.old] } else { [&stores.old, &stores.new] };
                plant(lost, &record("a", LEASE, 9)).await;
                let (leads, cancel, leader) = run(single(store, "x", &journal));
                sleep(RETRY * 3).await;
                let (handle, _cancel, _run) = run(stores.both("a", &journal).reclaim_own_identity(reclaims));
                sleep(LEASE * 6).await;
                assert_eq!((leads.fencing_token(), handle.is_leader()), (Some(1.into()), false), "{held} {reclaims}");
                assert_eq!(handle.leader().as_deref(), Some("x"), "{held} {reclaims}");
                cancel.cancel();
                leader.await.unwrap();
                sleep(LEASE + RETRY * 3).await;
                assert_eq!(handle.fencing_token(), Some(10.into()));
            });
            assert!(!events.iter().any(|event| event.contains("identity")), "{held} {reclaims}: {events:?}");
        }
    }
}
