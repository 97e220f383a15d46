//! Leases in two places: what clients of either place and of both see, and that no two of them lead.

mod elector;
mod network;
mod rollouts;

use std::time::Duration;

use leaderelection::MemoryStore;
use leaderelection::StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected};
use leaderelection::implement::{ConditionalStore as _, Precondition, Version};
use leaderelection_lease_api::Both;
use leaderelection_test_support::faulty::{Call, Fault, Faulty};
use serde_json::{Value, json};
use tokio::time::advance;

use crate::api::{Api, KEY, Server, lease, with};

const LEASE: Duration = Duration::from_secs(15);

/// The servers of the three rollouts.
struct Places {
    old: Api,
    new: Api,
    both: Server,
}

impl Places {
    fn new() -> Self {
        let (old, new) = (Api::new(), Api::new());
        let both = Server::on(join(old.store.clone(), new.store.clone()));
        Self { old, new, both }
    }

    /// Another server of both places, which has seen nothing yet.
    fn another(&self) -> Server {
        Server::on(join(self.old.store.clone(), self.new.store.clone()))
    }

    /// The holders in the old place and in the new one, and their tokens.
    async fn holders(&self) -> [(String, u64); 2] {
        let of = async |api: &Api| {
            let found = api.store.inner.get(KEY).await.unwrap();
            let record: Value = found.map(|found| serde_json::from_slice(&found.body).unwrap()).unwrap_or_default();
            let holder = record["holderIdentity"].as_str().unwrap_or_default().to_owned();
            (holder, record["leaderTransitions"].as_u64().unwrap_or_default())
        };
        [of(&self.old).await, of(&self.new).await]
    }
}

fn join(old: Faulty, new: Faulty) -> Both {
    Both::new(old, new, |key| key.starts_with("leases/default/").then(|| key.to_owned()))
}

/// Fails the next writes of one place.
fn fail_writes(api: &Api, fault: Fault) {
    api.store.fail(move |call, _, _| (call == Call::Put).then_some(fault));
}

/// The Lease as another holder would take it.
fn taken_by(shown: &Value, holder: &str) -> Value {
    let time = "2026-02-02T10:16:00.000000Z";
    with(shown, &json!({"holderIdentity": holder, "leaseDurationSeconds": 15, "acquireTime": time, "renewTime": time}))
}

fn holder(shown: &Value) -> &str {
    shown["spec"]["holderIdentity"].as_str().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_write_is_in_both_places_and_its_token_is_above_those_of_both() {
    let places = Places::new();
    let of_old = places.old.post(&with(&lease("go"), &json!({"leaseTransitions": 7}))).await.is(201);
    let seen = places.both.get().await.is(200);
    assert_eq!((holder(&seen), &seen["spec"]), ("go", &of_old["spec"]), "one place has a leader");
    places.old.put(&with(&of_old, &json!({"holderIdentity": ""}))).await.is(200);
    let held = places.both.put(&taken_by(&places.both.get().await.is(200), "a")).await.is(200);
    assert_eq!(places.holders().await, [("a".to_owned(), 8), ("a".to_owned(), 8)]);
    assert_eq!(held["metadata"]["annotations"]["leaderelection/token"], "8");
    let mut other = lease("b");
    other["metadata"]["name"] = "other".into();
    places.both.post(&other).await.is(201);
    drop(places.old.store.take_calls());
    drop(places.new.store.take_calls());
    let held = places.both.put(&with(&held, &json!({"renewTime": "2026-02-02T10:16:02.000000Z"}))).await.is(200);
    let calls = [&places.old, &places.new].map(|place| place.store.take_calls().len());
    assert_eq!(calls, [1, 1], "a renewal is one write for each");
    // Each place shows the holder to those who use that one alone.
    for place in [&places.old, &places.new] {
        let shown = place.get().await.is(200);
        assert_eq!((holder(&shown), &shown["metadata"]["uid"]), ("a", &held["metadata"]["uid"]));
    }
    places.both.put(&with(&held, &json!({"holderIdentity": "", "leaseDurationSeconds": 1}))).await.is(200);
    assert_eq!(places.holders().await, [(String::new(), 8), (String::new(), 8)]);
}

#[tokio::test(start_paused = true)]
async fn a_leader_of_one_place_blocks_the_other_place_too() {
    for of_old in [true, false] {
        let places = Places::new();
        let one = if of_old { &places.old } else { &places.new };
        let mut held = one.post(&lease("one")).await.is(201);
        let shown = places.both.get().await.is(200);
        assert_eq!(holder(&shown), "one");
        // A client that saw nothing else takes it; the holder renews meanwhile.
        held = one.put(&with(&held, &json!({"renewTime": "2026-02-02T10:15:32.000000Z"}))).await.is(200);
        places.both.put(&taken_by(&shown, "a")).await.is(409);
        assert_eq!(holder(&places.both.get().await.body), "one");
        one.put(&with(&held, &json!({"renewTime": "2026-02-02T10:15:34.000000Z"}))).await.is(200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_place_that_empties_the_leaders_write_lets_nobody_else_lead() {
    for is_new in [true, false] {
        let places = Places::new();
        places.both.post(&lease("a")).await.is(201);
        // Somebody who may write one place repeats the id of the leader's write.
        let store = &if is_new { &places.new } else { &places.old }.store.inner;
        let found = store.get(KEY).await.unwrap().unwrap();
        let mut emptied: Value = serde_json::from_slice(&found.body).unwrap();
        emptied["holderIdentity"] = "".into();
        store.put(KEY, emptied.to_string().into(), &Precondition::Matches(found.version)).await.unwrap();
        places.both.put(&taken_by(&places.both.get().await.is(200), "b")).await.is(409);
        places.both.put(&taken_by(&places.both.get().await.is(200), "a")).await.is(200);
        assert_eq!(places.holders().await.map(|(holder, _)| holder), ["a", "a"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_half_that_surely_stays_one_is_rolled_back_at_once() {
    for (kind, status) in [(Rejected, 500), (Fatal, 500), (Conflict, 409)] {
        let places = Places::new();
        fail_writes(&places.new, Fault::Refuse(kind));
        let answer = places.both.post(&lease("a")).await;
        assert_eq!(answer.headers.get("retry-after"), None, "{kind:?}");
        assert_eq!(answer.status, status, "{kind:?} {}", answer.body);
        assert_eq!(places.holders().await[0].0, "", "{kind:?}");
        places.new.store.recover();
        places.both.put(&taken_by(&places.both.get().await.is(200), "b")).await.is(200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_half_in_doubt_is_completed_and_blocks_others_for_its_lease() {
    let places = Places::new();
    let free = places.both.post(&with(&lease(""), &json!({"leaseDurationSeconds": 1}))).await.is(201);
    fail_writes(&places.new, Fault::Refuse(Ambiguous));
    places.both.put(&taken_by(&free, "a")).await.is(500);
    places.new.store.recover();
    assert_eq!(places.holders().await.map(|(holder, _)| holder), ["a", ""]);
    let shown = places.both.get().await.is(200);
    assert_eq!(holder(&shown), "", "nobody leads by a half");
    // Another server has seen the half later, so it waits longer.
    advance(LEASE / 2).await;
    let late = places.another();
    assert_eq!(holder(&late.get().await.body), "");
    advance(LEASE / 2 - Duration::from_millis(10)).await;
    for server in [&places.both, &late] {
        server.put(&taken_by(&server.get().await.is(200), "b")).await.is(409);
    }
    advance(Duration::from_millis(20)).await;
    late.put(&taken_by(&late.get().await.is(200), "b")).await.is(409);
    let completed = places.both.put(&taken_by(&places.both.get().await.is(200), "a")).await.is(200);
    assert_eq!(places.holders().await.map(|(holder, _)| holder), ["a", "a"]);
    assert_eq!(holder(&completed), "a");

    fail_writes(&places.new, Fault::Refuse(Ambiguous));
    places.both.put(&taken_by(&completed, "b")).await.is(500);
    places.new.store.recover();
    places.both.get().await.is(200);
    advance(LEASE).await;
    places.both.put(&taken_by(&places.both.get().await.is(200), "c")).await.is(200);
    let [old, new] = places.holders().await;
    assert_eq!((old.0.as_str(), &old), ("c", &new));
}

#[tokio::test(start_paused = true)]
async fn half_of_a_renewal_costs_no_term() {
    let places = Places::new();
    let held = places.both.post(&lease("a")).await.is(201);
    let renewed =
        |shown: &Value, time: &str| with(shown, &json!({"renewTime": format!("2026-02-02T10:{time}.000000Z")}));
    for fault in [Fault::Refuse(Ambiguous), Fault::Refuse(Rejected), Fault::Hang] {
        fail_writes(&places.new, fault);
        let shown = places.both.get().await.is(200);
        places.both.put(&renewed(&shown, "17:00")).await.is(500);
        places.new.store.recover();
        let shown = places.both.get().await.is(200);
        assert_eq!(holder(&shown), "a", "{fault:?}");
        // The same once more is not a write that is committed already.
        places.both.put(&shown).await.is(200);
        assert_eq!(places.holders().await.map(|(_, token)| token), [0, 0], "{fault:?}");
        let shown = places.both.get().await.is(200);
        places.both.put(&renewed(&shown, "16:00")).await.is(200);
    }
    // An answer that is lost is no loss.
    fail_writes(&places.new, Fault::ApplyThen(Ambiguous));
    fail_writes(&places.old, Fault::ApplyThen(Ambiguous));
    places.both.put(&renewed(&places.both.get().await.is(200), "18:00")).await.is(200);
    assert_eq!(places.both.get().await.body["metadata"]["uid"], held["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn whoever_holds_a_place_behind_the_leader_who_is_shown_is_waited_for() {
    let places = Places::new();
    // A leftover in the new place has the higher token, and the leader of the old place is alive.
    places.new.post(&with(&lease("leftover"), &json!({"leaseTransitions": 9}))).await.is(201);
    let mut held = places.old.post(&lease("alive")).await.is(201);
    let mut shown = places.both.get().await.is(200);
    assert_eq!(holder(&shown), "leftover");
    for second in 0..40 {
        advance(Duration::from_secs(1)).await;
        held = places
            .old
            .put(&with(&held, &json!({"renewTime": format!("2026-02-02T11:00:{second:02}.000000Z")})))
            .await
            .is(200);
        shown = places.both.get().await.is(200);
        places.both.put(&taken_by(&shown, "a")).await.is(409);
    }
    advance(LEASE).await;
    places.both.put(&taken_by(&shown, "a")).await.is(200);
    assert_eq!(places.holders().await, [("a".to_owned(), 10), ("a".to_owned(), 10)]);
}

#[tokio::test]
async fn marks_of_jobs_and_metadata_are_kept_from_both_places() {
    let places = Places::new();
    for (place, job) in [(&places.old, "in-old"), (&places.new, "in-new")] {
        let body = json!({"holderIdentity": "", "leaseDuration": "1s", "leaderTransitions": 3, "completedJobs": [job]});
        let absent = Precondition::Absent;
        place.store.inner.put(KEY, body.to_string().into(), &absent).await.unwrap();
    }
    places.both.put(&taken_by(&places.both.get().await.is(200), "a")).await.is(200);
    for place in [&places.old, &places.new] {
        let jobs = place.record().await["completedJobs"].to_string();
        assert!(jobs.contains("in-old") && jobs.contains("in-new"), "{jobs}");
    }
}

#[tokio::test]
async fn what_has_one_place_only_is_not_written_and_a_deletion_frees_both() {
    let places = Places::new();
    let elsewhere = crate::api::LEASES.replace("default", "elsewhere");
    let answer = places.both.send("POST", &elsewhere, "application/json", lease("a").to_string()).await;
    assert!(answer.is(500)["message"].as_str().unwrap().contains("no place in the old store"));
    places.both.send("GET", "/readyz", "", "").await.is(200);
    places.both.post(&lease("a")).await.is(201);
    assert_eq!(places.both.send("GET", crate::api::LEASES, "", "").await.is(200)["items"].as_array().unwrap().len(), 1);
    places.both.send("DELETE", crate::api::WEB, "", "").await.is(200);
    places.both.get().await.is(404);
    assert_eq!(places.holders().await, [(String::new(), 0), (String::new(), 0)]);
    assert_eq!(places.both.post(&lease("b")).await.token(), 1);
    let both = join(places.old.store.clone(), places.new.store.clone());
    assert_eq!(both.describe("leases/elsewhere/web"), "memory:leases/elsewhere/web");
    let refusal = both.delete(KEY, Some(&Version::new("1"))).await.unwrap_err();
    let named = "memory:leases/default/web and memory:leases/default/web: nothing is deleted in two places";
    assert!(refusal.kind() == Fatal && refusal.to_string().contains(named), "{refusal}");
}

#[tokio::test]
async fn a_place_that_cannot_be_read_hides_nobody() {
    let places = Places::new();
    places.old.post(&lease("a")).await.is(201);
    for (place, other) in [(&places.old, &places.new), (&places.new, &places.old)] {
        place.store.begin_outage(Rejected);
        places.both.get().await.is(500);
        place.store.recover();
        other.store.recover();
    }
    let store = MemoryStore::new();
    assert!(format!("{:?}", Both::new(store.clone(), store, |_| None)).starts_with("Both"));
}
