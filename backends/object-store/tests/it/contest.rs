//! Five candidates in one store in memory, whose clients repeat writes or do not.

use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leaderelection::{DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig};
use leaderelection_object_store::{ObjectStoreAdapter, ObjectStoreLock};
use object_store::memory::InMemory;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::faulty::{Fault, Faulty};

const CANDIDATES: usize = 5;

/// The number of terms of each candidate, after which it leaves the others alone.
const TERMS: usize = 8;

/// The common knowledge of all candidates.
#[derive(Default)]
struct Arena {
    leading: AtomicUsize,
    /// The tokens of the terms so far, and the breaches.
    tokens: Mutex<Vec<u64>>,
    breaches: Mutex<Vec<String>>,
}

impl Arena {
    async fn lead(&self, token: u64) {
        if self.leading.fetch_add(1, Ordering::SeqCst) > 0 {
            self.breaches.lock().unwrap().push(format!("two leaders, one of them with token {token}"));
        }
        {
            let mut tokens = self.tokens.lock().unwrap();
            if tokens.last().is_some_and(|last| *last >= token) {
                self.breaches.lock().unwrap().push(format!("token {token} after {tokens:?}"));
            }
            tokens.push(token);
        }
        tokio::task::yield_now().await;
        self.leading.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn contest(repeats: bool) {
    let (store, arena) = (InMemory::new(), Arc::new(Arena::default()));
    let mut candidates = JoinSet::new();
    for candidate in 0..CANDIDATES {
        let faults = iter::repeat_n(Fault::Repeated, if repeats { 10_000 } else { 0 });
        let client = Arc::new(Faulty::on(store.clone(), faults));
        let lock = ObjectStoreLock::new(ObjectStoreAdapter::new(client), "lock", format!("candidate-{candidate}"));
        let (arena, term) = (Arc::clone(&arena), Arc::new(Mutex::new(CancellationToken::new())));
        let own = Arc::clone(&term);
        // The work ends its own term.
        let callbacks = LeaderCallbacks::new().on_start_leading(move |leadership| {
            let (arena, own) = (Arc::clone(&arena), Arc::clone(&own));
            async move {
                arena.lead(leadership.fencing_token().into()).await;
                own.lock().unwrap().cancel();
            }
        });
        let config = LeaderElectionConfig::builder(lock, callbacks)
            .lease_duration(Duration::from_secs(60))
            .renew_deadline(Duration::from_secs(40))
            .retry_period(Duration::from_millis(20))
            .release_on_cancel(true)
            .build()
            .unwrap();
        candidates.spawn(async move {
            let elector = DefaultLeaderElector::new(config);
            for _ in 0..TERMS {
                let next = CancellationToken::new();
                next.clone_into(&mut term.lock().unwrap());
                elector.run(next.cancelled_owned()).await.unwrap();
            }
        });
    }
    let all = async {
        while let Some(ended) = candidates.join_next().await {
            ended.unwrap();
        }
    };
    timeout(Duration::from_secs(60), all).await.expect("terms in time");
    assert_eq!(arena.tokens.lock().unwrap().len(), CANDIDATES * TERMS);
    assert_eq!(*arena.breaches.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_candidates_exclude_each_other_without_retries_of_their_clients() {
    contest(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_candidates_exclude_each_other_with_retries_of_their_clients() {
    contest(true).await;
}
