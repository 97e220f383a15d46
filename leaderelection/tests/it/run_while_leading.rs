//! One term for one piece of work, and callers that wait.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use leaderelection::{
    CampaignError, ElectionError, Elector, LeaderCallbacks, MemoryStore, RunError, TermEndReason, TryLeadError,
};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::support::{LEASE, RETRY, TestLock, elector, plant, record, spawn_run, stored};

const MOMENT: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn run_while_leading_returns_the_output_and_releases() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let elector = elector(lock.clone(), LeaderCallbacks::new());
    for token in 1..4 {
        let output = elector
            .run_while_leading(pending(), |leadership| async move {
                sleep(RETRY * 2).await;
                assert!(leadership.is_valid());
                leadership.fencing_token()
            })
            .await;
        assert_eq!(output, Ok(token.into()));
        let released = stored(&store).await.record;
        assert!(released.is_released());
        assert_eq!(released.leader_transitions, token);
    }
}

#[tokio::test(start_paused = true)]
async fn run_while_leading_tells_that_leadership_was_lost() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let elector = elector(lock.clone(), LeaderCallbacks::new());
    let usurper = tokio::spawn({
        let store = store.clone();
        async move {
            sleep(RETRY * 3).await;
            plant(&store, &record("b", LEASE, 9)).await;
        }
    });
    let result = elector
        .run_while_leading(pending(), |leadership| async move {
            leadership.lost().await;
            "too late"
        })
        .await;
    usurper.await.unwrap();
    let reason = TermEndReason::TakenOver { by: "b".to_owned() };
    assert_eq!(result, Err(RunError::Lost { fencing_token: 1.into(), reason }));

    let cancel = CancellationToken::new();
    cancel.cancel();
    assert_eq!(elector.run_while_leading(cancel.cancelled_owned(), |_| async {}).await, Err(RunError::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn run_while_leading_gives_cancelled_work_time_to_finish() {
    let store = MemoryStore::new();
    let elector = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
    let cancel = CancellationToken::new();
    let canceller = cancel.clone();
    tokio::spawn(async move {
        sleep(RETRY).await;
        canceller.cancel();
    });
    let result = elector
        .run_while_leading(cancel.cancelled_owned(), |leadership| async move {
            leadership.lost().await;
            sleep(RETRY).await;
            "checkpoint"
        })
        .await;
    assert_eq!(result, Ok("checkpoint"));
    assert!(!stored(&store).await.record.is_released(), "release_on_cancel is off");
}

#[tokio::test(start_paused = true)]
async fn a_second_call_beside_the_first_is_refused_at_once() {
    let elector = Arc::new(elector(TestLock::new(&MemoryStore::new(), "a"), LeaderCallbacks::new()));
    let first = Arc::clone(&elector);
    let cancel = CancellationToken::new();
    let order = cancel.clone();
    let running = tokio::spawn(async move { first.run(order.cancelled_owned()).await });
    sleep(MOMENT).await;
    let refusal = ElectionError::AlreadyRunning;
    let second = timeout(LEASE, elector.run(pending())).await.expect("it does not wait for the first");
    assert_eq!(second, Err(refusal.clone()));
    assert_eq!(elector.campaign(pending()).await, Err(refusal.clone()));
    let service = |_| -> std::future::Ready<()> { panic!("the service was started") };
    let with_service = elector.campaign_with(pending(), service).await;
    assert!(matches!(with_service, Err(CampaignError::Election(ElectionError::AlreadyRunning))), "{with_service:?}");
    let work = |_| async { panic!("the work was started") };
    assert_eq!(elector.run_while_leading(pending(), work).await, Err(RunError::Election(refusal.clone())));
    assert_eq!(elector.next_term(pending()).await.unwrap_err(), refusal);
    assert_eq!(elector.try_lead().await.unwrap_err(), TryLeadError::Election(refusal));
    assert!(elector.handle().is_leader(), "the first call goes on");
    cancel.cancel();
    assert!(running.await.unwrap().is_ok());
    let term = elector.try_lead().await.expect("nothing runs any more");
    assert_eq!(elector.run(pending()).await, Err(ElectionError::AlreadyRunning), "its caller holds a term");
    drop(term);
    assert!(timeout(RETRY, elector.run(pending())).await.is_err(), "a run waits for the release of a dropped term");
}

#[tokio::test(start_paused = true)]
async fn a_future_runs_until_leadership_is_lost() {
    let store = MemoryStore::new();
    let elector = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
    let handle = elector.handle();
    let mut watching = handle.clone();
    let (cancel, running) = spawn_run(elector);
    let leadership = watching.elected().await.unwrap();
    assert_eq!(leadership.fencing_token(), 1);
    assert_eq!(leadership.run_until_lost(async { 42 }).await, Some(42));
    let never = leadership.run_until_lost(pending::<()>());
    let (outcome, ()) = tokio::join!(never, async {
        sleep(RETRY).await;
        handle.step_down();
    });
    assert_eq!(outcome, None);
    assert_eq!(leadership.run_until_lost(async { 42 }).await, None, "nothing runs after the term");
    drop((cancel, running.await.unwrap()));
    watching.elected().await.unwrap_err();
}
