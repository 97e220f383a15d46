//! One renewal through the elector against a bare store write: the difference is what the elector adds.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on should say so and end")]

#[path = "../tests/it/footprint/leader.rs"]
mod leader;

use std::time::Instant;

use criterion::Criterion;
use leaderelection::{ConditionalStore, Precondition};
use tokio::time::sleep;

use leader::{KEY, RETRY, one_leader, pass, runtime, writes};

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
    // Time that is paused jumps from one timer to the next: what passes on the real clock is work, that of
    // the runtime's timers and of waking the task included.
    group.bench_function("through the elector", |bencher| {
        let (runtime, store) = one_leader();
        bencher.iter_custom(|renewals| {
            let renewals = u32::try_from(renewals).unwrap();
            let before = writes(&runtime, &store);
            let start = Instant::now();
            pass(&runtime, RETRY * renewals);
            let took = start.elapsed();
            assert_eq!(writes(&runtime, &store) - before, renewals, "one write per retry period");
            took
        });
    });
    // What of that is the runtime's: a task that does nothing but sleep.
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
