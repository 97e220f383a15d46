//! The record's JSON, as the lock writes it and as a candidate reads it.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on should say so and end")]

use std::hint::black_box;

use criterion::Criterion;
use leaderelection::LeaderElectionRecord;
use leaderelection::lock::DEFAULT_MAX_LEASE_DURATION;

const KNOWN: &str = r#"{"holderIdentity":"node-123_0198c0de-7aaa-7bbb-8ccc-0123456789ab","leaseDuration":"15s","acquireTime":"2026-02-02T10:15:30.000000Z","renewTime":"2026-02-02T10:15:30.000000Z","leaderTransitions":7,"writeId":"0198c0de-7aaa-7bbb-8ccc-0123456789ab"}"#;

fn main() {
    let mut criterion = Criterion::default().without_plots().configure_from_args();
    // A newer writer's fields, which are kept and written back.
    let foreign = KNOWN.replace('}', r#","labels":{"zone":"a","rack":12},"strategy":"OldestEmulationVersion"}"#);
    for (name, body) in [("record", KNOWN), ("record with unknown fields", &foreign)] {
        let mut group = criterion.benchmark_group(name);
        let record = LeaderElectionRecord::from_json(body.as_bytes(), DEFAULT_MAX_LEASE_DURATION).unwrap();
        assert_eq!(record.to_json(), body.as_bytes());
        group.bench_function("encode", |bencher| bencher.iter(|| black_box(&record).to_json()));
        group.bench_function("decode", |bencher| {
            bencher.iter(|| LeaderElectionRecord::from_json(black_box(body.as_bytes()), DEFAULT_MAX_LEASE_DURATION));
        });
        group.finish();
    }
    criterion.final_summary();
}
