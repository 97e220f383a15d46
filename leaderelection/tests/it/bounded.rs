//! Locks and stores whose every call is answered within a limit.

use std::error::Error;
use std::future::pending;
use std::time::Duration;

use leaderelection::clock::TokioClock;
use leaderelection::implement::{
    ConditionalStore as _, ConditionalStoreExt, NoAnswer, Precondition, Version, loading_credentials,
};
use leaderelection::lock::{Bounded, TimeLimit};
use leaderelection::{LeaderElectionRecord, MemoryStore, ObjectStoreBasedLock as _, StoreErrorKind};
use tokio::time::{Instant, sleep};

use crate::support::{Fault, Faulty, LEASE, Op, TestLock};

const LIMIT: Duration = Duration::from_millis(2500);

fn limit() -> TimeLimit {
    TimeLimit::new(LIMIT).on_clock(TokioClock::new())
}

#[tokio::test(start_paused = true)]
async fn a_silent_lock_is_told_by_its_limit_and_the_outcome_counts_as_unknown() {
    let silent = TestLock::new(&MemoryStore::new(), "node-1");
    silent.set_outage(Some(Fault::ApplyThenHang));
    let lock = Bounded::new(silent, limit().of_setting("--request-timeout"));
    let record = LeaderElectionRecord::new("node-1", LEASE);
    let began = Instant::now();
    for (error, message) in [
        (lock.get().await.unwrap_err(), "cannot read lock memory:lock"),
        (lock.create(&record).await.unwrap_err(), "cannot create lock memory:lock"),
        (lock.update(&record, &Version::new("1")).await.unwrap_err(), "cannot update lock memory:lock"),
    ] {
        assert_eq!(error.kind(), StoreErrorKind::Ambiguous);
        assert_eq!(error.to_string(), message);
        let cause = error.source().unwrap();
        assert!(cause.is::<NoAnswer>());
        assert_eq!(
            cause.to_string(),
            "no answer within 2.5s (--request-timeout); check the network and the endpoint, or allow more time"
        );
    }
    assert_eq!(began.elapsed(), LIMIT * 3);
}

#[tokio::test(start_paused = true)]
async fn a_silent_store_is_told_by_its_limit() {
    let store = Bounded::new(Faulty::new(|_, _, _| Some(Fault::Hang)), limit());
    let version = Version::new("1");
    for error in [
        store.get("key").await.unwrap_err(),
        store.put("key", "{}".into(), &Precondition::Absent).await.unwrap_err(),
        store.delete("key", Some(&version)).await.unwrap_err(),
        store.list("key").await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), StoreErrorKind::Ambiguous);
        assert!(error.to_string().starts_with("memory:key: no answer within 2.5s (request_timeout)"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn everything_else_passes_through() {
    let lock = Bounded::new(TestLock::new(&MemoryStore::new(), "node-1"), limit());
    assert_eq!((lock.identity(), lock.describe().as_str()), ("node-1", "memory:lock"));
    let version = lock.create(&LeaderElectionRecord::new("node-1", LEASE)).await.unwrap();
    assert_eq!(lock.get().await.unwrap().unwrap().version, version);
    assert_eq!(lock.get_ref().ops(), [Op::Create, Op::Get]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_at_the_last_moment_counts() {
    let limit = limit();
    assert_eq!(limit.answer(async { tokio::time::sleep(LIMIT).await }).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn the_step_that_took_the_time_is_named_by_whichever_limit_is_over_first() {
    let inner = || TimeLimit::new(LIMIT * 4).of_setting("inner").on_clock(TokioClock::new());
    let slow = || loading_credentials(sleep(LIMIT * 2));
    let text = |error: NoAnswer| error.to_string();

    let error = limit().answer(inner().answer(slow())).await.unwrap_err();
    let expected = "the credentials were not loaded within 2.5s (request_timeout); check the source of the credentials, or \
                    allow more time";
    assert_eq!(text(error), expected);
    let error = inner().answer(limit().answer(slow())).await.unwrap().unwrap_err();
    assert_eq!(text(error), expected);

    let then_silent = async |before: Duration| {
        loading_credentials(sleep(before)).await;
        pending::<()>().await;
    };
    let error = limit().answer(inner().answer(then_silent(LIMIT / 2))).await.unwrap_err();
    assert!(text(error).starts_with("no answer within 2.5s"));

    // The second request is not to be blamed for the credentials of the first.
    let one_after_the_other = async {
        limit().answer(slow()).await.unwrap_err();
        inner().answer(pending::<()>()).await
    };
    let outer = TimeLimit::new(LIMIT * 3).on_clock(TokioClock::new());
    let error = outer.answer(one_after_the_other).await.unwrap_err();
    assert!(text(error).starts_with("no answer within 7.5s"));
}
