//! A lock of which two of three parts decide (rule M10).

use std::collections::BTreeSet;

use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::lock::LockParts;
use leaderelection::majority::plan::Plan;
use leaderelection::majority::view::View;
use leaderelection::{
    LeaderElectionConfigBuilder, LeaderElectionRecord, LeaderHandle, Majority, MemoryStore, ObjectStoreBasedLock as _,
    StoreErrorKind,
};
use tokio::time::{Duration, Instant, sleep};

use super::{SPREAD, run, single};
use crate::metrics::recorded;
use crate::support::{DEADLINE, Fault, Journal, LEASE, RETRY, TestLock, builder, logged, plant, record, stored};

/// The request timeout, which one poll of a part that has just stopped costs.
const TIMEOUT: Duration = Duration::from_millis(2500);

/// The stores of the parts, which were in use before.
async fn stores() -> [MemoryStore; 3] {
    let stores: [MemoryStore; 3] = Default::default();
    for store in &stores {
        plant(store, &record("", Duration::from_secs(1), 6)).await;
    }
    stores
}

fn locks(stores: &[MemoryStore; 3], identity: &str) -> [TestLock; 3] {
    [0, 1, 2].map(|part| TestLock::new(&stores[part], identity))
}

fn view(identity: &str) -> View {
    View::new(identity, ["a", "b", "c"].map(str::to_owned).into(), 2)
}

fn config(locks: &[TestLock; 3], journal: &Journal) -> LeaderElectionConfigBuilder {
    builder(Majority::of(locks.clone()).unwrap(), journal.callbacks()).release_on_cancel(true)
}

async fn records(stores: &[MemoryStore; 3]) -> [LeaderElectionRecord; 3] {
    [stored(&stores[0]).await.record, stored(&stores[1]).await.record, stored(&stores[2]).await.record]
}

/// Waits until a candidate leads, and returns the time that this took.
async fn until_led(mut handle: LeaderHandle) -> Duration {
    let began = Instant::now();
    while !handle.is_leader() {
        handle.changed().await.unwrap();
    }
    began.elapsed()
}

#[test]
fn a_leader_needs_a_majority() {
    let parts = || locks(&Default::default(), "a");
    for (needed, problem) in [(1, "needed (1) must be from 2 to 3"), (4, "needed (4) is more than the number of locks")]
    {
        let error = Majority::of(parts()).unwrap().needing(needed).unwrap_err().to_string();
        assert!(error.starts_with(problem), "{error}");
    }
    let described = |lock: Majority| leaderelection::ObjectStoreBasedLock::describe(&lock);
    assert!(described(Majority::of(parts()).unwrap()).starts_with("2 of "));
    assert!(Majority::of([] as [TestLock; 0]).unwrap_err().to_string().contains("there must be one at least"));
}

#[tokio::test(start_paused = true)]
async fn a_term_is_one_write_in_every_part() {
    let (stores, journal) = (stores().await, Journal::default());
    let (handle, cancel, run) = run(config(&locks(&stores, "a"), &journal));
    sleep(RETRY * 3).await;
    assert_eq!(handle.fencing_token(), Some(7.into()));
    for record in records(&stores).await {
        assert_eq!((&*record.holder_identity, record.leader_transitions), ("a", 7));
    }
    cancel.cancel();
    run.await.unwrap();
    sleep(RETRY).await;
    assert!(records(&stores).await.iter().all(LeaderElectionRecord::is_released));
}

#[tokio::test(start_paused = true)]
async fn a_leader_goes_on_without_one_part() {
    for gone in [0, 1, 2] {
        for fault in [Fault::Hang, Fault::Refuse(leaderelection::StoreErrorKind::Fatal)] {
            let (stores, journal) = (stores().await, Journal::default());
            let parts = locks(&stores, "a");
            let (handle, _cancel, _run) = run(config(&parts, &journal));
            let (other, _other, _run) = run(config(&locks(&stores, "b"), &journal));
            sleep(RETRY * 3).await;
            parts[gone].set_outage(Some(fault));
            for _ in 0..60 {
                sleep(RETRY).await;
                assert_eq!((handle.fencing_token(), other.is_leader()), (Some(7.into()), false), "{gone} {fault:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_leads_without_two_parts() {
    let (stores, journal) = (stores().await, Journal::default());
    let (ours, theirs) = (locks(&stores, "a"), locks(&stores, "b"));
    let (handle, _cancel, ended) = run(config(&ours, &journal));
    let (other, _other, _run) = run(config(&theirs, &journal));
    sleep(RETRY * 3).await;
    for part in [1, 2] {
        ours[part].set_outage(Some(Fault::Hang));
        theirs[part].set_outage(Some(Fault::Hang));
    }
    sleep(DEADLINE + SPREAD).await;
    assert!(!handle.is_leader());
    assert_eq!(ended.await.unwrap().reason().unwrap().name(), "renew_deadline");
    for _ in 0..30 {
        sleep(RETRY).await;
        assert!(!other.is_leader());
    }
    theirs[2].set_outage(None);
    let took = until_led(other).await;
    assert!(took < LEASE + TIMEOUT * 2 + RETRY * 5, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_takeover_needs_no_part_that_is_gone() {
    for gone in [0, 1, 2] {
        let (stores, journal) = (stores().await, Journal::default());
        let (ours, theirs) = (locks(&stores, "a"), locks(&stores, "b"));
        let (handle, _cancel, leader) = run(config(&ours, &journal));
        let (other, _other, _run) = run(config(&theirs, &journal));
        sleep(RETRY * 5).await;
        assert!(handle.is_leader());
        theirs[gone].set_outage(Some(Fault::Hang));
        leader.abort();
        let took = until_led(other).await;
        assert!(took < LEASE + RETRY * 11 / 5 + TIMEOUT * 2 + SPREAD, "{gone}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_part_that_was_away_is_taken_back() {
    for away in [0, 1, 2] {
        let (stores, journal) = (stores().await, Journal::default());
        let parts = locks(&stores, "a");
        parts[away].set_outage(Some(Fault::Hang));
        let (handle, _cancel, _run) = run(config(&parts, &journal));
        sleep(RETRY * 6).await;
        assert_eq!(handle.fencing_token(), Some(7.into()));
        // Somebody else has left a part of an earlier attempt behind.
        plant(&stores[away], &record("x", LEASE, 7)).await;
        parts[away].set_outage(None);
        sleep(RETRY * 3).await;
        assert_eq!(stored(&stores[away]).await.record.holder_identity, "a", "{away}");
        // The part counts again.
        parts[(away + 1) % 3].set_outage(Some(Fault::Hang));
        sleep(LEASE * 3).await;
        assert_eq!(handle.fencing_token(), Some(7.into()), "{away}");
    }
}

/// A leader does not write over a part of a later term, whose token would go back.
#[tokio::test(start_paused = true)]
async fn no_token_of_a_part_goes_back() {
    let (stores, journal) = (stores().await, Journal::default());
    let (handle, _cancel, _run) = run(config(&locks(&stores, "a"), &journal));
    sleep(RETRY * 3).await;
    plant(&stores[2], &record("x", LEASE, 8)).await;
    sleep(LEASE * 3).await;
    assert_eq!(handle.fencing_token(), Some(7.into()));
    assert_eq!(stored(&stores[2]).await.record.leader_transitions, 8);
}

/// The leader has forgotten its write in a part that comes back after two minutes, as another part goes.
#[tokio::test(start_paused = true)]
async fn a_leader_bears_the_change_of_the_part_that_is_away() {
    for (away, then) in [(2, 0), (2, 1), (0, 1), (1, 0), (1, 2), (0, 2)] {
        let (stores, journal) = (stores().await, Journal::default());
        let parts = locks(&stores, "a");
        let (handle, _cancel, _run) = run(config(&parts, &journal));
        sleep(RETRY * 3).await;
        parts[away].set_outage(Some(Fault::Hang));
        sleep(RETRY * 80).await;
        parts[away].set_outage(None);
        parts[then].set_outage(Some(Fault::Hang));
        for _ in 0..40 {
            sleep(RETRY).await;
            assert_eq!(handle.fencing_token(), Some(7.into()), "{away}, then {then}");
        }
    }
}

/// The part was away when the term began. Another candidate had taken it for a term with the same token, and has rolled that back.
#[tokio::test(start_paused = true)]
async fn a_leader_goes_on_with_a_part_that_a_rival_has_rolled_back() {
    for (away, then) in [(2, 0), (2, 1), (0, 1), (1, 0), (1, 2), (0, 2)] {
        let (stores, journal) = (stores().await, Journal::default());
        let parts = locks(&stores, "a");
        parts[away].set_outage(Some(Fault::Hang));
        let (handle, _cancel, _run) = run(config(&parts, &journal));
        until_led(handle.clone()).await;
        plant(&stores[away], &rolled_back("x")).await;
        parts[away].set_outage(None);
        parts[then].set_outage(Some(Fault::Hang));
        for _ in 0..40 {
            sleep(RETRY).await;
            assert_eq!(handle.fencing_token(), Some(7.into()), "{away}, then {then}");
        }
    }
}

/// The record of a takeover that has met a conflict behind its first part.
fn rolled_back(identity: &str) -> LeaderElectionRecord {
    let (mut view, mut taken) = (view(identity), record(identity, LEASE, 7));
    taken.write_id = Some("w".to_owned());
    view.show(&[(0, None), (1, None), (2, None)].into()).unwrap();
    let mut plan = view.plan(&taken, None).unwrap();
    let first = plan.send().unwrap().part();
    plan.answered(first, Ok(Version::new("0")));
    view.rolls_back(plan, StoreErrorKind::Conflict)[0].record().as_ref().clone()
}

/// The leader has never written one of the two parts that an operator has released.
#[tokio::test(start_paused = true)]
async fn a_leader_goes_when_two_parts_are_released_and_one_was_away() {
    for (away, then) in [(2, 0), (2, 1), (0, 1), (1, 0), (1, 2), (0, 2)] {
        let (stores, journal) = (stores().await, Journal::default());
        let parts = locks(&stores, "a");
        parts[away].set_outage(Some(Fault::Hang));
        let (handle, _cancel, ended) = run(config(&parts, &journal));
        until_led(handle.clone()).await;
        for part in [away, then] {
            plant(&stores[part], &record("", RETRY, 7)).await;
        }
        parts[away].set_outage(None);
        let outcome = tokio::time::timeout(RETRY * 3, ended).await.expect("the term ends").unwrap();
        assert_eq!(outcome.reason().unwrap().name(), "emptied", "{away}, {then}");
    }
}

/// An operator has released two parts, whose records have the token of the term.
#[tokio::test(start_paused = true)]
async fn a_leader_whose_parts_are_released_goes() {
    let (stores, journal) = (stores().await, Journal::default());
    let (_handle, _cancel, ended) = run(config(&locks(&stores, "a"), &journal));
    sleep(RETRY * 3).await;
    for store in &stores[1..] {
        plant(store, &record("", RETRY, 7)).await;
    }
    let outcome = tokio::time::timeout(RETRY * 3, ended).await.expect("the term ends").unwrap();
    assert_eq!(outcome.reason().unwrap().name(), "emptied");
}

#[test]
fn a_part_that_is_out_for_the_whole_term_is_told() {
    let warnings = logged(tracing::Level::WARN, async || {
        let (stores, journal) = (stores().await, Journal::default());
        let (handle, _cancel, _run) = run(config(&locks(&stores, "a"), &journal));
        sleep(RETRY * 3).await;
        plant(&stores[2], &record("x", LEASE, 8)).await;
        sleep(LEASE * 3).await;
        assert!(handle.is_leader());
    });
    let before = logged(tracing::Level::WARN, async || {
        let (stores, journal) = (stores().await, Journal::default());
        plant(&stores[2], &record("", LEASE, 8)).await;
        let (handle, _cancel, _run) = run(config(&locks(&stores, "a"), &journal));
        sleep(LEASE * 3).await;
        assert_eq!(handle.fencing_token(), Some(7.into()));
    });
    assert_eq!(before.len(), 1, "{before:?}");
    let told: Vec<_> = warnings.iter().filter(|warning| warning.contains("a token above the leader's")).collect();
    assert!(told.len() == 1 && told[0].contains("token=8") && told[0].contains("leader_token=7"), "{warnings:?}");
}

#[test]
fn a_part_that_is_out_for_the_whole_term_is_counted() {
    let left_out = "leader_election_parts_left_out{name=scheduler}";
    recorded(|figures| async move {
        let (stores, journal) = (stores().await, Journal::default());
        let (_handle, cancel, running) = run(config(&locks(&stores, "a"), &journal).name("scheduler"));
        sleep(RETRY * 3).await;
        assert_eq!(figures.take().get(left_out), None);
        plant(&stores[2], &record("x", LEASE, 8)).await;
        sleep(RETRY * 4).await;
        assert_eq!(figures.take().get(left_out), Some(&1.0));
        cancel.cancel();
        running.await.unwrap();
        assert_eq!(figures.take().get(left_out), None, "no figure but 0 after the term");
    });
}

/// Nobody goes on after the first conflict: whoever has taken a part before is the first to take the others.
#[test]
fn a_candidate_writes_no_part_after_the_first_conflict() {
    let mut view = view("a");
    view.show(&[(0, None), (1, None), (2, None)].into()).unwrap();
    let mut plan = view.plan(&record("a", LEASE, 0), None).unwrap();
    assert_eq!(plan.send().map(|put| put.part()), Some(0));
    assert!(plan.send().is_none(), "one after the other");
    assert_eq!(plan.answered(0, Err(StoreErrorKind::Conflict)), Some(false));
    assert!(plan.send().is_none(), "no other part");
}

/// A write that is committed in two parts says nothing of an earlier one in the third, which blocks its writer for no
/// lease.
#[test]
fn a_write_is_remembered_until_a_later_one_is_in_every_part() {
    let mut view = view("a");
    let found =
        |record: &LeaderElectionRecord, version| Some(VersionedRecord::new(record.clone(), Version::new(version)));
    let (first, empty) = (record("a", LEASE, 3), record("", RETRY, 4));
    view.show(&[(0, None), (1, None), (2, None)].into()).unwrap();
    view.plan(&first, None).unwrap();
    let second = record("a", LEASE, 4);
    let mut plan = view.plan(&second, None).unwrap();
    assert!(commit(&mut view, &mut plan, ["0", "1"]).is_some());
    // An operator releases both, and one of them goes away.
    view.show(&[(0, found(&empty, "2")), (1, found(&empty, "3")), (2, found(&first, "late"))].into()).unwrap();
    let (shown, _) = view.show(&[(1, found(&empty, "3")), (2, found(&first, "late"))].into()).unwrap();
    assert!(shown.unwrap().record.is_released());
}

/// The part has changed since the leader read it.
#[test]
fn a_part_that_is_behind_is_read_again_after_a_write_that_it_refuses() {
    let mut view = view("a");
    let found =
        |record: &LeaderElectionRecord, version| Some(VersionedRecord::new(record.clone(), Version::new(version)));
    let (held, behind) = (record("a", LEASE, 3), record("x", LEASE, 2));
    view.plan(&held, None).unwrap();
    let (shown, _) =
        view.show(&[(0, found(&held, "0")), (1, found(&held, "1")), (2, found(&behind, "2"))].into()).unwrap();
    let (mut renewed, mut version) = (held.clone(), shown.unwrap().version);
    for (round, reads) in [("first", vec![]), ("second", vec![2])] {
        renewed.write_id = Some(round.to_owned());
        let mut plan = view.plan(&renewed, Some(&version)).unwrap();
        assert_eq!(plan.puts().iter().any(|put| put.part() == 2), reads.is_empty(), "{round}");
        version = commit(&mut view, &mut plan, ["3", "4"]).unwrap();
        assert_eq!(view.leave(&plan, &BTreeSet::new()), reads, "{round}");
    }
}

/// Commits a write in the first two of three parts. Returns the version of the whole.
fn commit(view: &mut View, plan: &mut Plan, versions: [&str; 2]) -> Option<Version> {
    while plan.send().is_some() {}
    let answers = versions.into_iter().enumerate();
    let _ = answers.map(|(part, version)| plan.answered(part, Ok(Version::new(version)))).last();
    view.wrote(plan)
}

/// A candidate that has died with one part blocks nobody, whether the others have objects or not.
#[tokio::test(start_paused = true)]
async fn the_holder_of_one_part_does_not_bar_the_others() {
    for (are_new, taken) in [false, true].into_iter().flat_map(|are_new| [0, 1, 2].map(|taken| (are_new, taken))) {
        let (stores, journal) = (if are_new { Default::default() } else { stores().await }, Journal::default());
        let parts = locks(&stores, "a");
        let mut half = record("x", LEASE, 7);
        half.parts = Some(LockParts::new(2, parts.iter().map(|part| part.describe()).collect(), 7));
        plant(&stores[taken], &half).await;
        let (handle, _cancel, _run) = run(config(&parts, &journal));
        sleep(RETRY * 3).await;
        assert!(handle.is_leader(), "{taken}, {are_new}");
    }
}

/// Three rollouts from one lock to three, and back.
#[tokio::test(start_paused = true)]
async fn rollouts_between_one_and_three_have_no_gap() {
    let (stores, journal) = (<[MemoryStore; 3]>::default(), Journal::default());
    plant(&stores[0], &record("", RETRY, 41)).await;
    let one = |identity: &str| single(&stores[0], identity, &journal);
    let three = |identity: &str, needed| {
        let lock = Majority::of(locks(&stores, identity)).unwrap().needing(needed).unwrap();
        builder(lock, journal.callbacks()).release_on_cancel(true)
    };
    let rollouts = [
        [one("a"), one("b")],
        [three("c", 3), three("d", 3)],
        [three("e", 2), three("f", 2)],
        [three("g", 3), three("h", 3)],
        [one("i"), one("j")],
    ];
    let (mut runs, mut last) = (Vec::new(), 41);
    for config in rollouts.into_iter().flatten() {
        if runs.len() == 2 {
            let (_, cancel, ended): super::Running = runs.remove(0);
            let began = Instant::now();
            cancel.cancel();
            ended.await.unwrap();
            until_led(runs[0].0.clone()).await;
            assert!(began.elapsed() <= RETRY * 11 / 5, "a gap of {:?}", began.elapsed());
        }
        runs.push(run(config));
        sleep(LEASE * 2).await;
        let led: Vec<_> = runs.iter().filter_map(|(handle, ..)| handle.fencing_token()).collect();
        assert!(led.len() == 1 && led[0] >= last.into(), "{led:?} after {last}");
        last = led[0].into();
    }
}
