//! The gate between a controller that may watch all the time and the terms in which it reconciles.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::stream::{Stream, unfold};
use leaderelection::Leadership;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A gate that is open while this replica leads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(Arc<watch::Sender<Option<Turn>>>);

/// A term, as reconciliations find it.
#[derive(Clone, Debug)]
struct Turn {
    leadership: Leadership,
    inside: TaskTracker,
    /// Cancelled when nothing may be inside any more.
    over: CancellationToken,
    began: Instant,
    has_passed: Arc<AtomicBool>,
}

impl Gate {
    /// Lets reconciliations in until leadership is lost, and returns when the last one has left. Dropping the future ends
    /// those that are inside.
    pub(crate) async fn open(&self, leadership: Leadership) {
        let (inside, over) = (TaskTracker::new(), CancellationToken::new());
        let _over = over.clone().drop_guard();
        let turn = Turn { leadership, inside, over, began: Instant::now(), has_passed: Arc::default() };
        self.0.send_replace(Some(turn.clone()));
        turn.leadership.lost().await;
        self.0.send_replace(None);
        turn.inside.close();
        turn.inside.wait().await;
    }

    /// Returns an item whenever the gate opens from now on.
    pub(crate) fn openings(&self) -> impl Stream<Item = ()> + Send + use<> {
        unfold(self.0.subscribe(), |mut turns| async move {
            loop {
                turns.changed().await.ok()?;
                if turns.borrow_and_update().is_some() {
                    return Some(((), turns));
                }
            }
        })
    }

    /// Does some work if the gate is open. Returns `None` if it is not, or if the term ends before the work does.
    pub(crate) async fn pass<W: Future>(&self, work: impl FnOnce(Leadership) -> W) -> Option<W::Output> {
        let turn = self.0.borrow().clone()?;
        // The end of the term waits for whatever was inside when leadership was valid.
        let _inside = turn.inside.token();
        if !turn.leadership.is_valid() {
            return None;
        }
        if !turn.has_passed.swap(true, Ordering::Relaxed) {
            let waited = turn.began.elapsed();
            metrics::gauge!("operator_first_reconciliation_seconds").set(waited.as_secs_f64());
            println!("first reconciliation {waited:?} after the win");
        }
        turn.over.run_until_cancelled(work(turn.leadership)).await
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use futures_util::StreamExt as _;
    use leaderelection::{
        DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, MemoryLock, MemoryStore,
    };
    use tokio::sync::oneshot;
    use tokio::time::timeout;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_term_ends_when_the_last_reconciliation_has_left() {
        let gate = Gate::default();
        assert_eq!(gate.pass(async |_| ()).await, None, "nobody leads");
        let (mut openings, opened) = (Box::pin(gate.openings()), gate.clone());
        let callbacks = LeaderCallbacks::new().on_start_leading(move |leadership| {
            let gate = opened.clone();
            async move { gate.open(leadership).await }
        });
        let lock = MemoryLock::new(MemoryStore::new(), "lock", "a");
        let config = LeaderElectionConfig::builder(lock, callbacks).build().unwrap();
        let cancel = CancellationToken::new();
        let (_handle, mut election) = DefaultLeaderElector::new(config).spawn(cancel.clone().cancelled_owned());
        timeout(PATIENCE, openings.next()).await.expect("it leads").unwrap();

        let (end, ended) = oneshot::channel();
        let (begin, begun) = oneshot::channel();
        let inside = tokio::spawn({
            let gate = gate.clone();
            async move {
                let work = |leadership: Leadership| async move {
                    begin.send(leadership.clone()).unwrap();
                    ended.await.unwrap();
                    leadership.fencing_token()
                };
                gate.pass(work).await
            }
        });
        let leadership = timeout(PATIENCE, begun).await.expect("it passes").unwrap();
        cancel.cancel();
        timeout(PATIENCE, leadership.lost()).await.expect("it is cancelled");
        assert_eq!(gate.pass(async |_| ()).await, None, "no reconciliation begins");
        assert!((&mut election).now_or_never().is_none(), "the term waits");
        end.send(()).unwrap();
        assert_eq!(inside.await.unwrap(), Some(1.into()));
        timeout(PATIENCE, election).await.expect("the term ends").unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_term_that_is_dropped_ends_what_is_inside() {
        let gate = Gate::default();
        let lock = MemoryLock::new(MemoryStore::new(), "lock", "a");
        let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).build().unwrap();
        let elector = DefaultLeaderElector::new(config);
        let term = elector.next_term(pending()).await.unwrap().unwrap();
        let mut open = Box::pin(gate.open(term.clone()));
        assert!((&mut open).now_or_never().is_none());
        let inside = gate.pass(|_| pending::<()>());
        tokio::pin!(inside);
        assert!((&mut inside).now_or_never().is_none());
        drop(open);
        assert_eq!(inside.await, None);
    }
}
