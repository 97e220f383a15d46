//! The probe passes correct stores, finds every store that would elect two leaders, and blames no store for an
//! error.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leaderelection::clock::{Clock, LocalInstant, TokioClock};
use leaderelection::implement::{ConditionalStore, ConditionalStoreExt, ListedObject};
use leaderelection::{MemoryStore, StoreErrorKind};
use leaderelection_conformance::{Check, CheckKind, Outcome, ProbeConfig, ProbeReport, Verdict, probe};

use crate::broken_store::{Breakage, Broken};
use leaderelection_test_support::faulty::{Call, Fault, Faulty};

fn config() -> ProbeConfig {
    ProbeConfig::new().clock(TokioClock::new())
}

async fn keys(store: &MemoryStore) -> Vec<String> {
    ListedObject::keys(store.list("").await.unwrap())
}

fn outcomes(report: &ProbeReport) -> Vec<Outcome> {
    report.checks().iter().map(Check::outcome).collect()
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_right_passes_and_is_left_as_it_was() {
    let store = Faulty::default();
    let report = probe(store.clone(), &config()).await;
    assert_eq!(report.verdict(), Verdict::Fit, "{report}");
    assert_eq!(outcomes(&report), [Outcome::Passed; 6]);
    assert_eq!(keys(&store.inner).await, Vec::<String>::new());
    assert_eq!(report.requests(), store.requests());
    assert!((250..330).contains(&report.requests()), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_machines_clock_will_do() {
    let store = MemoryStore::new();
    let config = ProbeConfig::new();
    let (first, second) = tokio::join!(probe(store.clone(), &config), probe(store.clone(), &config));
    assert_eq!((first.verdict(), second.verdict()), (Verdict::Fit, Verdict::Fit), "{first}\n{second}");
    assert_eq!(keys(&store).await, Vec::<String>::new());
    let latency = first.latency().unwrap();
    assert!(latency.min <= latency.median && latency.median <= latency.p99 && latency.p99 <= first.duration());
}

#[tokio::test(start_paused = true)]
async fn every_store_that_would_elect_two_leaders_is_found() {
    use CheckKind::{CreateTwice, RacingCreators, RacingUpdaters, StaleUpdate, UpdateMissing};
    for (breakage, failing, what) in [
        (Breakage::NoPreconditions, CreateTwice, "a second create was accepted"),
        (Breakage::ConstantVersion, StaleUpdate, "two contents have the version same"),
        (Breakage::UpdateCreates, UpdateMissing, "an update of a missing object was accepted"),
        (Breakage::CheckThenAct, RacingCreators, "64 of 64 racing creators of race 1 were told that they won"),
        (Breakage::CheckThenActOnUpdates, RacingUpdaters, "64 of 64 racing updaters of race 1 were told"),
        (Breakage::WritesAllTheSame, CreateTwice, "a second create failed with Conflict, but was written"),
        (Breakage::LostUpdate, RacingCreators, "won, and its write is not there"),
        (Breakage::HiddenRetry, CreateTwice, "a call that had nothing to conflict with failed with Conflict"),
        (Breakage::Cache, StaleUpdate, "after an update, a read shows \"the first write of a probe\" at version"),
        (Breakage::CachesAbsence, CreateTwice, "after a second create that was refused, a read shows no object"),
    ] {
        let store = Broken::new(breakage);
        let report = probe(store.clone(), &config()).await;
        assert_eq!(report.verdict(), Verdict::Unfit, "{breakage:?}: {report}");
        let check = report.decisive().unwrap();
        assert_eq!(check.kind(), failing, "{breakage:?}: {report}");
        assert!(check.detail().contains(what), "{breakage:?} was found for another reason: {report}");
        assert!(outcomes(&report).iter().all(|&outcome| outcome != Outcome::Skipped), "{breakage:?}: {report}");
        // A deletion by a version that a cache made up is refused, and what a cache calls absent is not deleted.
        if !matches!(breakage, Breakage::Cache | Breakage::CachesAbsence) {
            assert_eq!(keys(&store.inner).await, Vec::<String>::new(), "{breakage:?}: {report}");
            assert!(report.leftovers().is_empty(), "{breakage:?}: {report}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_only_in_a_race_passes_all_but_the_races() {
    let report = probe(Broken::new(Breakage::CheckThenAct), &config()).await;
    let failed = |check: &&Check| check.outcome() == Outcome::Failed;
    let failed: Vec<CheckKind> = report.checks().iter().filter(failed).map(Check::kind).collect();
    assert_eq!(failed, [CheckKind::RacingCreators, CheckKind::RacingUpdaters], "{report}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_keeps_no_leader_is_told_from_one_that_elects_two() {
    for (breakage, refused, what) in [
        (Breakage::RefusesUpdates, CheckKind::StaleUpdate, "an update that names the current version "),
        (Breakage::RefusesCreates, CheckKind::CreateTwice, "a create of a missing object is refused"),
        (Breakage::RefusesRacers, CheckKind::RacingCreators, "all of 64 racing creators of race 1 are refused"),
    ] {
        let store = Broken::new(breakage);
        let report = probe(store.clone(), &config()).await;
        assert_eq!(report.verdict(), Verdict::Unusable, "{breakage:?}: {report}");
        let check = report.decisive().unwrap();
        assert_eq!((check.kind(), check.outcome()), (refused, Outcome::Refused), "{breakage:?}: {report}");
        let text = report.to_string();
        assert!(check.detail().starts_with(what), "{breakage:?}: {text}");
        assert!(text.starts_with("UNUSABLE: ") && text.contains("bare_etags=true"), "{breakage:?}: {text}");
        assert_eq!(keys(&store.inner).await, Vec::<String>::new(), "{breakage:?}: {text}");
        assert!(
            ListedObject::keys(store.inner.list("").await.unwrap()).is_empty() && report.leftovers().is_empty(),
            "{text}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_without_conditional_deletions_is_fit_and_is_left_as_it_was() {
    let store = Broken::new(Breakage::NoConditionalDelete);
    let report = probe(store.clone(), &config()).await;
    assert_eq!(report.verdict(), Verdict::Fit, "{report}");
    let check = report.checks().last().unwrap();
    assert_eq!((check.kind(), check.outcome()), (CheckKind::StaleDelete, Outcome::Inconclusive), "{report}");
    assert!(report.to_string().contains("no election depends on it"), "{report}");
    assert_eq!(report.leftovers(), Vec::<String>::new(), "{report}");
    assert_eq!(keys(&store.inner).await, Vec::<String>::new());
}

/// An error page of a proxy is neither large nor more than a line in the table.
#[tokio::test(start_paused = true)]
async fn the_words_of_a_store_are_one_line_of_the_table() {
    let report = probe(Broken::new(Breakage::Talkative), &config()).await;
    assert_eq!(report.verdict(), Verdict::Inconclusive, "{report}");
    let text = report.to_string();
    assert!(text.len() < 2000, "{} bytes", text.len());
    assert!(!text.contains('\u{1b}') && text.contains("<html> [31m oh no oh no"), "{text}");
    let late = probe(Broken::new(Breakage::Talkative), &config().time_limit(Duration::ZERO)).await.to_string();
    assert!(late.len() < 2000 && !late.contains('\u{1b}'), "{late}");
}

#[tokio::test(start_paused = true)]
async fn unconditional_deletions_are_found_and_forgiven() {
    let report = probe(Broken::new(Breakage::UnconditionalDelete), &config()).await;
    assert_eq!(report.verdict(), Verdict::Fit);
    let check = report.checks().last().unwrap();
    assert_eq!((check.kind(), check.outcome()), (CheckKind::StaleDelete, Outcome::Failed));
    assert!(report.to_string().contains("a stale deletion was accepted; the contract says"), "{report}");
    assert!(report.to_string().contains("no election depends on it"), "{report}");
}

#[tokio::test(start_paused = true)]
async fn stores_that_are_only_slow_or_overloaded_pass() {
    for breakage in [Breakage::ContentVersions, Breakage::Overloaded] {
        let store = Broken::new(breakage);
        let report = probe(store.clone(), &config()).await;
        assert_eq!(report.verdict(), Verdict::Fit, "{breakage:?}: {report}");
        assert_eq!(keys(&store.inner).await, Vec::<String>::new(), "{breakage:?}: {report}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_takes_one_write_a_second_passes() {
    let (clock, written) = (TokioClock::new(), Mutex::new(BTreeMap::<String, LocalInstant>::new()));
    let store = Faulty::new(move |call, key, _| {
        let (mut written, now) = (written.lock().unwrap(), clock.now());
        match written.get(key) {
            _ if call == Call::Get => None,
            Some(&last) if now.saturating_since(last) < Duration::from_secs(1) => {
                Some(Fault::Refuse(StoreErrorKind::Rejected))
            }
            _ => {
                written.insert(key.to_owned(), now);
                None
            }
        }
    });
    let report = probe(store.clone(), &config()).await;
    assert_eq!(report.verdict(), Verdict::Fit, "{report}");
    assert_eq!(keys(&store.inner).await, Vec::<String>::new());
    assert!(report.duration() < Duration::from_secs(30), "{report}");
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_lost_now_and_then_decide_nothing() {
    for lost in [Fault::ApplyThen(StoreErrorKind::Ambiguous), Fault::ApplyThenHang, Fault::Hang] {
        let store = Faulty::new(move |_, _, before| (before % 7 == 3).then_some(lost));
        let report = probe(store.clone(), &config().time_limit(Duration::from_secs(1000))).await;
        assert_ne!(report.verdict(), Verdict::Unfit, "{lost:?}: {report}");
    }
}

/// Some stores answer a read of a missing object in words of their own.
#[tokio::test(start_paused = true)]
async fn a_store_that_hides_missing_objects_is_judged_by_its_writes() {
    let written = Mutex::new(BTreeSet::new());
    let store = Faulty::new(move |call, key, _| {
        let mut written = written.lock().unwrap();
        match call {
            Call::Get if !written.contains(key) => Some(Fault::Refuse(StoreErrorKind::Ambiguous)),
            Call::Put => {
                written.insert(key.to_owned());
                None
            }
            _ => None,
        }
    });
    let report = probe(store, &config()).await;
    assert_eq!(report.verdict(), Verdict::Fit, "{report}");
}

/// A proxy that repeats a write reports the writer's own first write as a conflict.
#[tokio::test(start_paused = true)]
async fn a_store_behind_a_proxy_that_repeats_many_writes_is_fit() {
    for every in 2..=7 {
        let writes = AtomicUsize::new(0);
        let store = Faulty::new(move |call, _, _| {
            let is_repeated = call == Call::Put && writes.fetch_add(1, Ordering::SeqCst).is_multiple_of(every);
            is_repeated.then_some(Fault::ApplyThen(StoreErrorKind::Conflict))
        });
        let report = probe(store.clone(), &config()).await;
        assert_eq!(report.verdict(), Verdict::Fit, "one write in {every}: {report}");
        assert_eq!(keys(&store.inner).await, Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn a_race_whose_winner_was_told_otherwise_has_one_winner() {
    for told in [
        Fault::ApplyThenHang,
        Fault::ApplyThen(StoreErrorKind::Ambiguous),
        Fault::ApplyThen(StoreErrorKind::Rejected),
        Fault::ApplyThen(StoreErrorKind::Conflict),
    ] {
        let seen = Mutex::new(BTreeSet::new());
        // The first racer wins every time.
        let store = Faulty::new(move |call, key, _| {
            let is_racer = call == Call::Put && key.contains("creators");
            (is_racer && seen.lock().unwrap().insert(key.to_owned())).then_some(told)
        });
        let report = probe(store.clone(), &config().time_limit(Duration::from_secs(100))).await;
        assert_eq!(report.verdict(), Verdict::Fit, "{told:?}: {report}");
        assert_eq!(keys(&store.inner).await, Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn access_denied_is_inconclusive() {
    let store = Faulty::new(move |_, _, _| Some(Fault::Refuse(StoreErrorKind::Fatal)));
    let report = probe(store.clone(), &config()).await;
    assert_eq!(report.verdict(), Verdict::Inconclusive);
    assert_eq!(report.decisive().map(Check::kind), Some(CheckKind::CreateTwice));
    assert_eq!(outcomes(&report)[1..], [Outcome::Skipped; 5]);
    let text = report.to_string();
    assert!(text.starts_with("inconclusive: errors or missing answers"), "{text}");
    assert!(text.contains("injected"), "{text}");
    assert!(store.requests() < 5, "{text}");
}

#[tokio::test(start_paused = true)]
async fn errors_in_a_race_are_inconclusive() {
    for fault in [Fault::Refuse(StoreErrorKind::Fatal), Fault::Refuse(StoreErrorKind::Rejected)] {
        let store = Faulty::new(move |call, key, _| (call == Call::Put && key.contains("updaters")).then_some(fault));
        let report = probe(store.clone(), &config()).await;
        assert_eq!(report.verdict(), Verdict::Inconclusive, "{fault:?}: {report}");
        assert_eq!(report.decisive().map(Check::kind), Some(CheckKind::RacingUpdaters), "{fault:?}: {report}");
        assert_eq!(keys(&store.inner).await, Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn two_winners_condemn_a_store_that_also_denies_access() {
    let report = probe(Broken::new(Breakage::CheckThenActOrDeny), &config()).await;
    assert_eq!(report.decisive().map(Check::kind), Some(CheckKind::RacingCreators), "{report}");
    assert_eq!(report.verdict(), Verdict::Unfit, "{report}");
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_deleted_is_named() {
    let store = Faulty::new(|call, _, _| (call == Call::Delete).then_some(Fault::Refuse(StoreErrorKind::Fatal)));
    let report = probe(store.clone(), &config()).await;
    assert_eq!(report.verdict(), Verdict::Fit, "{report}");
    let left = keys(&store.inner).await;
    assert!(!left.is_empty());
    let described: Vec<_> = left.iter().map(|key| store.describe(key)).collect();
    assert_eq!(report.leftovers(), described, "no more and no less: {report}");
    assert!(report.to_string().contains("may have been left behind; delete by hand:\n  memory:leaderelection-probe/"));
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_create_is_counted_and_names_no_missing_object() {
    let store = Faulty::new(|call, key, _| (call == Call::Put && key.contains("create-twice")).then_some(Fault::Hang));
    let report = probe(store.clone(), &config()).await;
    assert_eq!(report.verdict(), Verdict::Inconclusive);
    assert_eq!(report.leftovers(), Vec::<String>::new(), "{report}");
    assert!(report.to_string().contains("3 creates had no answer; if they still arrive"), "{report}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_never_answers_well_gets_few_requests_and_little_time() {
    for fault in [
        Fault::Hang,
        Fault::Refuse(StoreErrorKind::Rejected),
        Fault::Refuse(StoreErrorKind::Ambiguous),
        Fault::ApplyThen(StoreErrorKind::Ambiguous),
        Fault::Refuse(StoreErrorKind::Conflict),
    ] {
        let store = Faulty::new(move |_, _, _| Some(fault));
        let report = probe(store.clone(), &config()).await;
        assert_ne!(report.verdict(), Verdict::Fit, "{fault:?}: {report}");
        assert!(store.requests() < 300, "{fault:?}: {report}");
        assert!(report.duration() <= Duration::from_secs(70), "{fault:?}: {report}");
    }
}

#[tokio::test(start_paused = true)]
async fn time_is_limited() {
    let store = Faulty::new(|call, key, _| (call == Call::Get && key.contains("creators")).then_some(Fault::Hang));
    let report = probe(store.clone(), &config().time_limit(Duration::from_secs(5))).await;
    let check = report.decisive().unwrap();
    assert_eq!((check.kind(), check.outcome()), (CheckKind::RacingCreators, Outcome::Inconclusive), "{report}");
    assert!(check.detail().starts_with("not finished within 5s"), "{report}");
    assert_eq!(outcomes(&report)[4..], [Outcome::Skipped; 2]);
    assert!(report.duration() <= Duration::from_secs(15), "{report}");
    assert!(report.is_out_of_time() && report.last_error().is_none(), "{report}");
}

/// Nothing is deleted in a store that has answered nothing, so the probe ends with its checks.
#[tokio::test(start_paused = true)]
async fn an_unavailable_store_takes_no_more_than_the_time_limit() {
    for (fault, left) in [(Fault::Refuse(StoreErrorKind::Rejected), 0), (Fault::Hang, 1)] {
        let store = Faulty::new(move |_, _, _| Some(fault));
        let limit = Duration::from_millis(3_500);
        let report = probe(store, &config().request_timeout(Duration::from_secs(1)).time_limit(limit)).await;
        assert_eq!(report.verdict(), Verdict::Inconclusive, "{fault:?}: {report}");
        assert!(report.is_out_of_time() && report.last_error().is_some(), "{fault:?}: {report}");
        assert!(report.duration() < limit + Duration::from_secs(1), "{fault:?}: {report}");
        assert_eq!(report.leftovers().len(), left, "{fault:?}: {report}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_report_reads_well() {
    let config = config().prefix("scratch/").writers(4);
    let report = probe(MemoryStore::new(), &config).await;
    let id = report.place().strip_prefix("memory:scratch/").unwrap();
    let text = report.to_string().replace(id, "ID");
    let expected = "\
fit for leader election

  create twice                passed        a second create failed with Conflict, and changed nothing
  stale update                passed        a stale update failed with Conflict, and changed nothing
  update of a missing object  passed        an update of a missing object failed with Conflict, and created nothing
  racing creators             passed        one winner in each of 4 races of 2 to 4; the losers: 8 Conflict
  racing updaters             passed        one winner in each of 50 races of 2 to 4; the losers: 62 Conflict
  stale delete                passed        a stale deletion failed with Conflict, and changed nothing

no race had two winners (54 races): a fault that shows in 1 of 18 races would have been found with a probability of \
95%; to find a rarer one, probe with more rounds

kind of store: full (conditional creates and updates)
probed memory:scratch/ID
192 requests in 0.0ns; latency min 0.0ns, median 0.0ns, p99 0.0ns";
    assert_eq!(text, expected);

    let text = probe(Broken::new(Breakage::CheckThenAct), &config).await.to_string();
    assert!(
        text.starts_with(
            "UNFIT: it breaks the contract that keeps leaders exclusive; do not use it for leader election\n"
        ),
        "{text}"
    );
    assert!(
        text.contains("  racing creators             FAILED        4 of 4 racing creators of race 1 were"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_probe_goes_where_it_is_told() {
    for (config, place) in [
        (config(), "memory:leaderelection-probe/"),
        (config().prefix("a/b-"), "memory:a/b-"),
        (config().beside("locks/prod/scheduler"), "memory:locks/prod/leaderelection-probe/"),
        (config().beside("scheduler"), "memory:leaderelection-probe/"),
    ] {
        let store = Faulty::new(move |_, key, _| {
            assert!(format!("memory:{key}").starts_with(place), "{key}");
            None
        });
        let report = probe(store.clone(), &config).await;
        assert!(report.place().starts_with(place), "{report}");
    }
}
