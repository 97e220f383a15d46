//! One renewal through the elector against a bare store write: the difference is what the elector adds.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on should say so and end")]

#[allow(dead_code, reason = "the tests need more of it")]
#[path = "../tests/it/footprint/leader.rs"]
mod leader;

use std::time::{Duration, Instant};

use async_trait::async_trait;
use criterion::{Bencher, Criterion};
use leaderelection::implement::{ConditionalStore, Precondition, Version, VersionedRecord};
use leaderelection::{LeaderElectionRecord, LockError, MemoryLock, MemoryStore, ObjectStoreBasedLock};
use tokio::runtime::Runtime;
use tokio::time::sleep;

use leader::{KEY, RETRY, one_leader, one_leader_by, pass, runtime, writes};

fn main() {
    let mut criterion = Criterion::default().without_plots().configure_from_args();
    let mut group = criterion.benchmark_group("renewal");
    group.bench_function("bare store write", |bencher| {
        let (leading, store) = one_leader();
        drop(leading);
        let runtime = runtime();
        let object = runtime.block_on(store.get(KEY)).unwrap().unwrap();
        let mut expected = Precondition::Matches(object.version);
        bencher.iter_custom(|writes| {
            let start = Instant::now();
            runtime.block_on(async {
                for _ in 0..writes {
                    expected = Precondition::Matches(store.put(KEY, object.body.clone(), &expected).await.unwrap());
                }
            });
            start.elapsed()
        });
    });
    group.bench_function("through the elector", |bencher| renew(bencher, &one_leader()));
    // The way of a store that is not in memory: the elector waits for the answer, and times it.
    group.bench_function("through the elector, answered late", |bencher| renew(bencher, &one_leader_by(Late)));
    // What the runtime takes of these: a task that does nothing but sleep.
    group.bench_function("a bare timer", |bencher| {
        let runtime = runtime();
        bencher.iter_custom(|sleeps| {
            let start = Instant::now();
            let sleeper = async move {
                for _ in 0..sleeps {
                    sleep(RETRY).await;
                }
            };
            runtime.block_on(async { tokio::spawn(sleeper).await.unwrap() });
            start.elapsed()
        });
    });
    group.finish();
    criterion.final_summary();
}

/// Time that is paused jumps from one timer to the next: what passes on the real clock is work, that of
/// the runtime's timers and of waking the task included.
fn renew(bencher: &mut Bencher<'_>, (runtime, store): &(Runtime, MemoryStore)) {
    bencher.iter_custom(|renewals| {
        let renewals = u32::try_from(renewals).unwrap();
        let before = writes(runtime, store);
        let start = Instant::now();
        pass(runtime, RETRY * renewals);
        let took = start.elapsed();
        assert_eq!(writes(runtime, store) - before, renewals, "one write per retry period");
        took
    });
}

/// A lock that takes a moment to answer.
#[derive(Debug)]
struct Late(MemoryLock);

#[async_trait]
impl ObjectStoreBasedLock for Late {
    async fn get(&self) -> Result<Option<VersionedRecord>, LockError> {
        self.0.get().await
    }

    async fn create(&self, record: &LeaderElectionRecord) -> Result<Version, LockError> {
        self.0.create(record).await
    }

    async fn update(&self, record: &LeaderElectionRecord, expected: &Version) -> Result<Version, LockError> {
        sleep(Duration::from_millis(10)).await;
        self.0.update(record, expected).await
    }

    fn identity(&self) -> &str {
        self.0.identity()
    }

    fn describe(&self) -> String {
        self.0.describe()
    }
}
