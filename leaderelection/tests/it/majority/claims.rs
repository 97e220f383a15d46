//! Parts whose writer is hostile (M12): what one of them claims decides nothing, and a write id stands for no content.

use std::future::pending;
use std::time::Duration;

use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::lock::{JobOutcome, LockParts, MAX_LEADER_TRANSITIONS};
use leaderelection::majority::parts::PollAnswers;
use leaderelection::majority::view::View;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderElectionRecord, Majority, MemoryStore, ObjectStoreBasedLock as _,
};
use tokio::time::{sleep, timeout};

use super::{SPREAD, run};
use crate::support::{Journal, LEASE, RETRY, TestLock, builder, plant, record, stored};

/// A change of a record.
type Forgery = fn(&mut LeaderElectionRecord);

/// The records that somebody may write who has read the leader's record.
const FORGERIES: [(&str, Forgery); 7] = [
    ("nobody", |record| record.holder_identity.clear()),
    ("another holder", |record| record.holder_identity = "hostile".to_owned()),
    ("a short lease", |record| record.lease_duration = Duration::from_nanos(1)),
    ("a higher token", |record| record.leader_transitions += 1000),
    ("a released higher token", |record| {
        record.holder_identity.clear();
        record.leader_transitions += 1000;
    }),
    ("no token after it", |record| record.leader_transitions = MAX_LEADER_TRANSITIONS),
    ("a lower token", |record| {
        record.holder_identity.clear();
        record.leader_transitions = 0;
    }),
];

fn view(identity: &str, (size, quorum): (usize, usize)) -> View {
    View::new(identity, (0..size).map(|part| part.to_string()).collect(), quorum)
}

fn answers<'a>(records: impl IntoIterator<Item = (usize, &'a LeaderElectionRecord, &'a str)>) -> PollAnswers {
    let found = |record: &LeaderElectionRecord, version| VersionedRecord::new(record.clone(), Version::new(version));
    records.into_iter().map(|(part, record, version)| (part, Some(found(record, version)))).collect()
}

/// Fewer than 2q - n hostile parts free no lock, whether the candidate has seen the leader's write before or not.
#[test]
fn the_writer_of_too_few_parts_makes_no_second_leader() {
    let held = record("leader", LEASE, 7);
    for (size, quorum) in [(2, 2), (3, 3), (4, 3), (5, 4), (5, 5)] {
        for hostile in 1_u32..1 << size {
            if hostile.count_ones() as usize >= 2 * quorum - size {
                continue;
            }
            for (what, forge) in FORGERIES {
                let mut forged = held.clone();
                forge(&mut forged);
                let all = (0..size).map(|part| match hostile & (1 << part) {
                    0 => (part, &held, "first"),
                    _ => (part, &forged, "forged"),
                });
                for has_seen in [false, true] {
                    let mut candidate = view("candidate", (size, quorum));
                    if has_seen {
                        candidate.show(&answers((0..size).map(|part| (part, &held, "first")))).unwrap();
                    }
                    let (shown, _) = candidate.show(&answers(all.clone())).unwrap();
                    let shown = shown.unwrap().record;
                    let case = format!("{quorum} of {size}, {hostile:b}, {what}, {has_seen}: {shown:?}");
                    assert!(!shown.is_released() && shown.lease_duration == LEASE, "{case}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_id_beside_another_content_ends_no_wait() {
    let (stores, journal) = (<[MemoryStore; 3]>::default(), Journal::default());
    let config = |identity: &str| {
        let locks = [0, 1, 2].map(|part| TestLock::new(&stores[part], identity));
        builder(Majority::of(locks).unwrap().needing(3).unwrap(), journal.callbacks())
    };
    let (leader, ..) = run(config("a"));
    sleep(RETRY * 3).await;
    let (other, ..) = run(config("b"));
    sleep(RETRY * 3).await;
    for _ in 0..20 {
        for part in [2, 1] {
            let mut forged = stored(&stores[part]).await.record;
            forged.holder_identity.clear();
            plant(&stores[part], &forged).await;
        }
        for _ in 0..40 {
            assert!(!leader.is_leader() || !other.is_leader());
            sleep(RETRY / 20).await;
        }
    }
}

/// A leader of three parts has crashed, and the writer of one of them claims what it likes.
#[tokio::test(start_paused = true)]
async fn the_claim_of_one_part_keeps_nobody_from_leading() {
    let alone: Forgery = |record| {
        record.holder_identity = "hostile".to_owned();
        record.leader_transitions += 1000;
        record.parts = None;
    };
    let strange: Forgery = |record| {
        record.leader_transitions += 1;
        record.parts = Some(LockParts::new(1, vec!["elsewhere".to_owned()], record.leader_transitions));
    };
    let other_purpose: Forgery = |record| record.unknown.set("purpose", &"another");
    let done: Forgery = |record| record.unknown.set("completedJobs", &["today"]);
    let claims = [("alone", alone), ("other parts", strange), ("another purpose", other_purpose), ("a job", done)];
    for (what, forge) in claims.into_iter().chain(FORGERIES) {
        for part in [0, 1, 2] {
            let (stores, journal) = (<[MemoryStore; 3]>::default(), Journal::default());
            let config = |identity: &str| {
                let locks = [0, 1, 2].map(|part| TestLock::new(&stores[part], identity));
                builder(Majority::of(locks).unwrap(), journal.callbacks()).service("ours")
            };
            let (_handle, _cancel, leader) = run(config("a"));
            sleep(RETRY * 3).await;
            leader.abort();
            let mut forged = stored(&stores[part]).await.record;
            forge(&mut forged);
            plant(&stores[part], &forged).await;
            let elector = DefaultLeaderElector::new(config("b").build().unwrap());
            let job = "today".parse().unwrap();
            let work = elector.run_once(pending(), &job, |_| async { Ok::<_, ()>(()) });
            let outcome = timeout(LEASE + RETRY * 11 / 5 + SPREAD, work).await;
            assert_eq!(outcome.expect("a leader in time").unwrap(), JobOutcome::Done(()), "{what} in part {part}");
            let tokens = [&stores[(part + 1) % 3], &stores[(part + 2) % 3]].map(stored);
            for token in futures_util::future::join_all(tokens).await {
                assert_eq!(token.record.leader_transitions, 2, "{what} in part {part}");
            }
        }
    }
}

/// The mark of a release that has reached one part counts, or its part is not replaced: the release may reach a second one.
#[test]
fn no_part_with_a_mark_in_flight_is_taken_for_its_job() {
    let mut marked = record("", LEASE, 7);
    marked.unknown.set("completedJobs", &["today"]);
    // The others show the leader, or that an operator has released them.
    for (part, holder) in [0, 1, 2].into_iter().flat_map(|part| [(part, "leader"), (part, "")]) {
        let held = record(holder, LEASE, 7);
        let mut candidate = view("candidate", (3, 2));
        let all = (0..3).map(|other| if other == part { (other, &marked, "marked") } else { (other, &held, "held") });
        let (shown, _) = candidate.show(&answers(all)).unwrap();
        let shown = shown.unwrap();
        assert!(shown.record.completed_jobs().is_empty(), "two parts are without it");
        let mut taken = record("candidate", LEASE, 8);
        taken.unknown = shown.record.unknown.clone();
        let mut plan = candidate.plan(&taken, Some(&shown.version)).unwrap();
        assert!(plan.puts().iter().all(|put| put.part() != part), "{part} {holder:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn parts_with_the_largest_token_bar_the_lock_only_together() {
    let stores = <[MemoryStore; 3]>::default();
    let lock = Majority::of([0, 1, 2].map(|part| TestLock::new(&stores[part], "a"))).unwrap();
    for (exhausted, token) in [(1, 5), (2, MAX_LEADER_TRANSITIONS)] {
        for (part, store) in stores.iter().enumerate() {
            let mut released = record("", RETRY, if part < exhausted { MAX_LEADER_TRANSITIONS } else { 5 });
            released.write_id = Some(format!("{exhausted} {part}"));
            plant(store, &released).await;
        }
        assert_eq!(lock.get().await.unwrap().unwrap().record.leader_transitions, token);
    }
}

/// Beside the part of a candidate that died, the free parts are enough only with the one that has no next token.
#[test]
fn a_part_without_a_next_token_is_not_free_beside_a_dead_candidates() {
    let released = |token| record("", RETRY, token);
    let [free, held, exhausted] = [released(16), record("dead", LEASE, 16), released(MAX_LEADER_TRANSITIONS)];
    let all = answers([(0, &free, "0"), (1, &held, "1"), (2, &free, "2"), (3, &exhausted, "3")]);
    let fewer = answers([(0, &free, "0"), (1, &held, "1"), (3, &exhausted, "3")]);
    for is_first in [true, false] {
        let mut view = view("a", (4, 3));
        if !is_first {
            view.show(&fewer).unwrap();
        }
        let (shown, _) = view.show(&all).unwrap();
        let shown = shown.unwrap().record;
        assert_eq!((&*shown.holder_identity, shown.leader_transitions), ("dead", 16));
    }
}

/// The other parts have no objects yet, or only that of a candidate that died.
#[tokio::test(start_paused = true)]
async fn the_writer_of_one_part_uses_up_no_tokens_before_the_others_have_any() {
    for (exhausted, is_half_taken) in [0, 1, 2, 3].into_iter().flat_map(|part| [(part, false), (part, true)]) {
        let stores = <[MemoryStore; 4]>::default();
        let parts = [0, 1, 2, 3].map(|part| TestLock::new(&stores[part], "a"));
        plant(&stores[exhausted], &record("", RETRY, MAX_LEADER_TRANSITIONS)).await;
        if is_half_taken {
            let mut half = record("dead", LEASE, 1);
            half.parts = Some(LockParts::new(3, parts.iter().map(|part| part.describe()).collect(), 1));
            plant(&stores[(exhausted + 1) % 4], &half).await;
        }
        let (handle, ..) = run(builder(Majority::of(parts).unwrap(), Journal::default().callbacks()));
        sleep(LEASE + RETRY * 11 / 5 + SPREAD).await;
        assert_eq!(handle.fencing_token(), Some((1 + u64::from(is_half_taken)).into()), "{exhausted} {is_half_taken}");
    }
}

/// A later leader on one part alone has a larger token than whoever led both.
#[tokio::test(start_paused = true)]
async fn parts_that_are_all_needed_show_the_highest_token() {
    for tokens in [[5, 9], [9, 5]] {
        let stores = <[MemoryStore; 2]>::default();
        for (store, token) in stores.iter().zip(tokens) {
            let mut released = record("", RETRY, token);
            released.write_id = Some(token.to_string());
            plant(store, &released).await;
        }
        let lock = Majority::of([0, 1].map(|part| TestLock::new(&stores[part], "a"))).unwrap();
        assert_eq!(lock.get().await.unwrap().unwrap().record.leader_transitions, 9, "{tokens:?}");
    }
}

/// A candidate replaces, after any two polls, no part of another whose token is not below its own (M5).
#[test]
fn a_term_has_a_token_above_all_parts_that_it_takes() {
    let written = |holder: &str, token: u64, write_id: &str| {
        let mut written = record(holder, LEASE, token);
        written.write_id = Some(write_id.to_owned());
        Some(written)
    };
    let own = written("a", 9, "own").unwrap();
    // A part may be missing, too, or may not answer.
    let contents = [
        None,
        written("x", 7, "x"),
        written("", 7, "x left"),
        written("x", 8, "half"),
        written("", 8, "half returned"),
        written("", 9, "later"),
        written("y", 9, "y"),
        Some(own.clone()),
    ];
    let answers_of = |code: usize| -> PollAnswers {
        let chosen = |part: usize| code / 9_usize.pow(part as u32) % 9;
        let answered = (0..3).filter(|part| chosen(*part) < contents.len());
        let found = |record: LeaderElectionRecord, version: String| VersionedRecord::new(record, Version::new(version));
        let of = |part: usize| contents[chosen(part)].clone().map(|record| found(record, format!("{}", chosen(part))));
        answered.map(|part| (part, of(part))).collect()
    };
    for first in (0..729).filter(|first| answers_of(*first).len() >= 2) {
        for second in (0..729).step_by(7).filter(|second| answers_of(*second).len() >= 2) {
            let mut candidate = view("a", (3, 2));
            candidate.plan(&own, None).unwrap();
            let (before, _) = candidate.show(&answers_of(first)).unwrap();
            let (shown, _) = candidate.show(&answers_of(second)).unwrap();
            let token = before.iter().chain(&shown).map(|found| found.record.leader_transitions + 1).max();
            let taken = record("a", LEASE, token.unwrap_or_default());
            let mut plan = candidate.plan(&taken, shown.as_ref().map(|shown| &shown.version)).unwrap();
            for put in plan.puts() {
                let found = answers_of(second).remove(&put.part()).unwrap().map(|found| found.record);
                let is_below = found.as_ref().is_none_or(|found| found.leader_transitions < taken.leader_transitions);
                let is_own = found.is_some_and(|found| found.write_id == own.write_id);
                assert!(is_below || is_own, "{first} {second}: {taken:?} into {}", put.part());
            }
        }
    }
}
