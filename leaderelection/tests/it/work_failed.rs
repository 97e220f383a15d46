//! Work that returns an error (rule 21).

use std::convert::Infallible;
use std::future::pending;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use leaderelection::handle::Change;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, Leadership, LockError, MemoryStore, StoreErrorKind, TermEndReason,
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::Level;

use crate::support::{Journal, LEASE, RETRY, TestLock, builder, elector, logged, stored};

/// Set in the process that a test starts.
const EXITS: &str = "LEADERELECTION_TEST_EXITS";

/// An error with a cause.
fn cannot_begin() -> LockError {
    LockError::new(StoreErrorKind::Fatal, "cannot open", "the queue", "no such queue")
}

fn failing(journal: &Journal) -> LeaderCallbacks {
    let stop = journal.clone();
    LeaderCallbacks::new()
        .on_start_leading(|_| async {
            sleep(RETRY * 2).await;
            Err::<(), _>(cannot_begin())
        })
        .on_stop_leading(move || stop.write("stop"))
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_work_ends_the_term_and_releases_the_lease() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let elector = elector(TestLock::new(&store, "a"), failing(&journal));
    let (handle, began) = (elector.handle(), Instant::now());
    let outcome = elector.run(pending()).await.unwrap();
    assert_eq!(outcome.reason(), Some(&TermEndReason::WorkFailed));
    assert_eq!((began.elapsed(), journal.entries()), (RETRY * 2, vec!["stop".to_owned()]));
    assert!(stored(&store).await.record.is_released());
    let ends = |change: &Change| matches!(change, Change::StoppedLeading { reason: TermEndReason::WorkFailed, .. });
    assert!(handle.transitions().iter().any(|transition| ends(&transition.change)));
    assert_eq!(TermEndReason::WorkFailed.name(), "work_failed");
    assert_eq!(TermEndReason::WorkFailed.to_string(), "the leader's work failed");
}

#[test]
fn the_error_is_logged_once_with_its_causes() {
    let run = async || {
        let elector = elector(TestLock::new(&MemoryStore::new(), "a"), failing(&Journal::default()));
        elector.run(pending()).await.unwrap();
    };
    let errors = logged(Level::ERROR, run);
    assert_eq!(errors.len(), 1, "{errors:#?}");
    for part in ["the leader's work failed; the term ends", "cannot open the queue: no such queue"] {
        assert!(errors[0].contains(part), "{errors:?}");
    }
    let told = logged(Level::INFO, run);
    assert!(told.iter().any(|line| line.contains("stopped leading") && line.contains("the leader's work failed")));
}

#[test]
fn the_last_line_of_a_process_that_exits_on_loss_has_the_error() {
    if std::env::var_os(EXITS).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let callbacks = failing(&Journal::default()).exit_on_loss();
        let _ = runtime.block_on(elector(TestLock::new(&MemoryStore::new(), "a"), callbacks).run(pending()));
        return;
    }
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args(["--exact", "work_failed::the_last_line_of_a_process_that_exits_on_loss_has_the_error"]);
    let ended = process.env(EXITS, "1").output().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    let last =
        "leadership is lost, and the process ends: the leader's work failed: cannot open the queue: no such queue";
    assert!(ended.status.code() == Some(1) && told.lines().any(|line| line.ends_with(last)), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_campaign_lets_others_go_first_after_work_that_failed() {
    let store = MemoryStore::new();
    let starts = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&starts);
    let callbacks = LeaderCallbacks::new().on_start_leading(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Err::<(), _>("not today") }
    });
    let elector = elector(TestLock::new(&store, "a"), callbacks);
    let campaign = tokio::spawn(async move { elector.campaign(pending()).await });
    sleep(LEASE - Duration::from_millis(1)).await;
    assert_eq!(starts.load(Ordering::Relaxed), 1, "nobody else had the time to lead");
    sleep(LEASE).await;
    assert_eq!(starts.load(Ordering::Relaxed), 2);

    let other = crate::support::elector(TestLock::new(&store, "b"), Journal::default().callbacks());
    let handle = other.handle();
    drop(tokio::spawn(async move { other.run(pending()).await }));
    sleep(LEASE * 3).await;
    assert!(handle.is_leader(), "somebody whose work begins");
    campaign.abort();
}

#[tokio::test(start_paused = true)]
async fn an_error_after_the_loss_changes_no_reason_and_is_logged() {
    let store = MemoryStore::new();
    let callbacks = LeaderCallbacks::new().on_start_leading(|leadership: Leadership| async move {
        leadership.lost().await;
        Err::<(), _>("could not tidy up")
    });
    let config = builder(TestLock::new(&store, "a"), callbacks).release_on_cancel(true).build().unwrap();
    let elector = DefaultLeaderElector::new(config);
    let cancel = CancellationToken::new();
    let (token, stop) = (cancel.clone(), async {
        sleep(RETRY).await;
        cancel.cancel();
    });
    let (outcome, ()) = tokio::join!(elector.run(token.cancelled_owned()), stop);
    assert_eq!(outcome.unwrap().reason(), Some(&TermEndReason::Cancelled));
    assert!(stored(&store).await.record.is_released());
}

/// Every kind of output that work may have. Work that never returns has the type of `loop`.
#[test]
fn outputs_of_many_types_are_accepted() {
    drop(LeaderCallbacks::new().on_start_leading(|_| async {}));
    drop(LeaderCallbacks::new().on_start_leading(|_| async {
        loop {
            sleep(RETRY).await;
        }
    }));
    drop(LeaderCallbacks::new().on_start_leading(|_| async { panic!("a bug") }));
    drop(LeaderCallbacks::new().on_start_leading(|_| async { Ok::<Infallible, String>(loop_forever().await) }));
    drop(
        LeaderCallbacks::new()
            .on_start_leading(|_| async { Err::<(), Box<dyn std::error::Error + Send + Sync>>("x".into()) }),
    );
    drop(LeaderCallbacks::new().on_start_leading(|_| async { Ok::<(), std::io::Error>(()) }));
}

async fn loop_forever() -> Infallible {
    std::future::pending().await
}
