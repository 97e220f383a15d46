use bytes::Bytes;
use leaderelection::implement::{ConditionalStore as _, Precondition};
use leaderelection::{MemoryStore, StoreError};

use super::*;
use crate::lock::observed::Observed;

fn at(seconds: u64) -> LocalInstant {
    LocalInstant::from_nanos(0) + Duration::from_secs(seconds)
}

fn sample(second: u64, millis: u64, is_write: bool) -> Sample {
    Sample { sent_at: at(second), took: Duration::from_millis(millis), is_write, succeeded: true }
}

#[test]
fn writes_go_before_reads_and_old_ones_are_left_out() {
    let latencies = Latencies::default();
    assert!(Chart::of(&latencies.last(at(0)), at(0)).is_none());
    latencies.add(sample(1, 10, true));
    latencies.add(sample(200, 20, false));
    assert_eq!(latencies.last(at(300)), [sample(1, 10, true)]);
    assert_eq!(latencies.last(at(302)), [sample(200, 20, false)]);
    for _ in 0..2 * MOST {
        latencies.add(sample(301, 30, true));
    }
    assert_eq!(latencies.last(at(302)).len(), MOST);
}

#[test]
fn the_chart_has_the_longest_request_as_its_height() {
    let failed = Sample { succeeded: false, ..sample(300, 400, true) };
    let chart = Chart::of(&[sample(0, 100, true), sample(150, 200, true), failed], at(300)).unwrap();
    assert_eq!((chart.median, chart.longest), (Duration::from_millis(200), Duration::from_millis(400)));
    assert_eq!((chart.failed, chart.is_of_writes), (1, true));
    let bars: Vec<_> = chart.bars.iter().map(|bar| (bar.x, bar.height, bar.y(), bar.succeeded)).collect();
    assert_eq!(bars, [(0, 25, 75, true), (500, 50, 50, true), (996, 100, 0, false)]);
}

#[tokio::test]
async fn requests_to_the_lock_are_measured_and_others_are_not() {
    let latencies = Latencies::default();
    let timed = Timed { key: "lock".to_owned(), latencies: latencies.clone() };
    let store = Observed::new(Arc::new(MemoryStore::new()), timed);
    let body = || Bytes::from_static(b"1");
    store.put("probe", body(), &Precondition::Absent).await.unwrap();
    store.get("lock").await.unwrap();
    store.put("lock", body(), &Precondition::Absent).await.unwrap();
    store.put("lock", body(), &Precondition::Absent).await.unwrap_err();
    // The time of this request is over before it is answered.
    let silence = store.observe("put", "lock", std::future::pending::<Result<(), StoreError>>());
    tokio::time::timeout(Duration::ZERO, silence).await.unwrap_err();
    let seen: Vec<_> = latencies.0.lock().unwrap().iter().map(|sample| (sample.is_write, sample.succeeded)).collect();
    assert_eq!(seen, [(false, true), (true, true), (true, false), (true, false)]);
}
