//! The figures that the `metrics` facade gets.

use std::collections::BTreeMap;
use std::future::pending;

use leaderelection::clock::TokioClock;
use leaderelection::{Elector, MemoryStore, Session, StoreErrorKind};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tokio::time::{pause, sleep};

use crate::support::{
    Call, DEADLINE, Fault, Faulty, Journal, Op, RETRY, TestLock, builder, elector, plant, record, spawn_run, stored,
};

/// Runs `scenario` in simulated time with a recorder of its own; `scenario` may read the figures.
pub(crate) fn recorded<F: Future<Output = ()>>(scenario: impl FnOnce(Figures) -> F) {
    let recorder = DebuggingRecorder::new();
    let figures = Figures(recorder.snapshotter());
    metrics::with_local_recorder(&recorder, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            pause();
            scenario(figures).await;
        });
    });
}

#[derive(Clone)]
pub(crate) struct Figures(Snapshotter);

impl Figures {
    /// Every figure since the last call, by its name and labels as Prometheus writes them. Of a histogram, the number of its
    /// values.
    pub(crate) fn take(&self) -> BTreeMap<String, f64> {
        let snapshot = self.0.snapshot().into_vec();
        let named = snapshot.into_iter().map(|(key, _, _, value)| {
            let (_, key) = key.into_parts();
            let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            let value = match value {
                DebugValue::Counter(count) => count as f64,
                DebugValue::Gauge(value) => value.into_inner(),
                DebugValue::Histogram(values) => values.len() as f64,
            };
            (format!("{}{{{}}}", key.name(), labels.join(",")), value)
        });
        named.filter(|(_, value)| *value != 0.0).collect()
    }
}

fn assert_figures(figures: &BTreeMap<String, f64>, expected: &[(&str, f64)]) {
    let expected: BTreeMap<_, _> =
        expected.iter().map(|(name, value)| (format!("leader_election_{name}"), *value)).collect();
    let figures: BTreeMap<_, _> =
        figures.iter().filter(|(name, _)| !name.contains("timestamp")).map(|(n, v)| (n.clone(), *v)).collect();
    assert_eq!(figures, expected);
}

#[test]
fn a_quiet_term_is_told_in_full() {
    recorded(|figures| async move {
        let store = MemoryStore::new();
        let config = builder(TestLock::new(&store, "a"), Journal::default().callbacks())
            .name("scheduler")
            .release_on_cancel(true);
        let (cancel, running) = spawn_run(leaderelection::DefaultLeaderElector::new(config.build().unwrap()));
        sleep(RETRY * 5 / 2).await;
        let seen = figures.take();
        let renewed = stored(&store).await.record.renew_time.unwrap().timestamp_millis();
        assert_eq!(seen["leader_election_last_renewal_timestamp_seconds{name=scheduler}"], renewed as f64 / 1e3);
        assert_figures(
            &seen,
            &[
                ("master_status{name=scheduler}", 1.0),
                ("terms_total{name=scheduler}", 1.0),
                ("transitions_total{name=scheduler}", 1.0),
                ("renewal_duration_seconds{name=scheduler}", 2.0),
                ("store_requests_total{name=scheduler,operation=get,outcome=missing}", 1.0),
                ("store_requests_total{name=scheduler,operation=create,outcome=ok}", 1.0),
                ("store_requests_total{name=scheduler,operation=update,outcome=ok}", 2.0),
            ],
        );
        cancel.cancel();
        running.await.unwrap();
        assert_figures(
            &figures.take(),
            &[
                ("terms_ended_total{name=scheduler,reason=cancelled}", 1.0),
                ("store_requests_total{name=scheduler,operation=release,outcome=ok}", 1.0),
            ],
        );
    });
}

#[test]
fn trouble_is_told() {
    recorded(|figures| async move {
        let store = MemoryStore::new();
        let lock = TestLock::new(&store, "a")
            .with_fault(Op::Update, 0, Fault::ApplyThen(StoreErrorKind::Ambiguous))
            .with_fault(Op::Update, 1, Fault::Refuse(StoreErrorKind::Ambiguous));
        let (_cancel, running) = spawn_run(elector(lock.clone(), Journal::default().callbacks()));
        sleep(RETRY * 5 / 2 + RETRY).await;
        let seen = figures.take();
        let of = |name: &str| seen.get(&format!("leader_election_{name}")).copied().unwrap_or_default();
        assert_eq!(of("slowpath_total{name=memory:lock}"), 2.0);
        assert_eq!(of("ambiguous_writes_total{name=memory:lock,resolution=landed}"), 1.0);
        assert_eq!(of("ambiguous_writes_total{name=memory:lock,resolution=lost}"), 1.0);
        assert_eq!(of("store_requests_total{name=memory:lock,operation=update,outcome=ambiguous}"), 2.0);

        lock.set_outage(Some(Fault::Refuse(StoreErrorKind::Ambiguous)));
        assert_eq!(running.await.unwrap().reason().unwrap().name(), "renew_deadline");
        let seen = figures.take();
        let of = |name: &str| seen.get(&format!("leader_election_{name}")).copied().unwrap_or_default();
        assert_eq!(of("master_status{name=memory:lock}"), 0.0);
        assert_eq!(of("terms_ended_total{name=memory:lock,reason=renew_deadline}"), 1.0);
        assert!(of("ambiguous_writes_total{name=memory:lock,resolution=unknown}") >= 1.0, "{seen:?}");
    });
}

#[test]
fn a_dropped_election_does_not_lead_in_the_figures() {
    recorded(|figures| async move {
        let (_cancel, running) =
            spawn_run(elector(TestLock::new(&MemoryStore::new(), "a"), Journal::default().callbacks()));
        sleep(RETRY).await;
        figures.take();
        running.abort();
        drop(running.await);
        assert_figures(&figures.take(), &[("terms_ended_total{name=memory:lock,reason=cancelled}", 1.0)]);
    });
}

#[test]
fn work_that_overruns_and_shared_identities_are_told() {
    recorded(|figures| async move {
        let store = MemoryStore::new();
        let callbacks = leaderelection::LeaderCallbacks::new().on_start_leading(|_| pending::<()>());
        let (cancel, running) = spawn_run(elector(TestLock::new(&store, "a"), callbacks));
        sleep(RETRY).await;
        cancel.cancel();
        running.await.unwrap();
        assert_eq!(figures.take().get("leader_election_overruns_total{name=memory:lock}"), Some(&1.0));

        let (_cancel, _running) = spawn_run(elector(TestLock::new(&store, "a"), Journal::default().callbacks()));
        for transitions in 5..8 {
            plant(&store, &record("a", DEADLINE, transitions)).await;
            sleep(RETRY * 3).await;
        }
        assert_eq!(figures.take().get("leader_election_identity_clashes_total{name=memory:lock}"), Some(&1.0));
    });
}

#[test]
fn the_long_work_of_a_session_is_told() {
    recorded(|figures| async move {
        let store = Faulty::new(|call, key, _| (call == Call::Put && key.contains("/locks/")).then_some(Fault::Hang));
        let session = Session::builder(store.clone(), "fleet", "a").name("fleet").clock(TokioClock::new());
        let (session, names) = (session.build().unwrap(), (0..100).map(|lock| lock.to_string()));
        let callbacks = |_: &str| Journal::default().callbacks();
        let mut run = std::pin::pin!(session.lead_all(names, callbacks, pending()));
        let _ = tokio::time::timeout(RETRY * 5 / 2, &mut run).await;
        let seen = figures.take();
        let work = |state: &str| seen.get(&format!("leader_election_session_work{{name=fleet,state={state}}}"));
        assert_eq!((work("taking"), work("waiting")), (Some(&16.0), Some(&84.0)), "{seen:?}");
    });
}

#[test]
fn a_session_and_its_locks_are_told() {
    recorded(|figures| async move {
        let store = MemoryStore::new();
        let start = |identity: &str| {
            let session = Session::builder(store.clone(), "fleet", identity).name("fleet").clock(TokioClock::new());
            let session = session.build().unwrap();
            let mut tasks = Vec::new();
            for lock in ["x", "y"] {
                let elector = session.elector(lock, Journal::default().callbacks()).unwrap();
                tasks.push(tokio::spawn(async move { elector.campaign(pending()).await }));
            }
            tasks.push(tokio::spawn(async move { session.run(pending()).await }));
            tasks
        };
        let first = start("a");
        sleep(RETRY * 5 / 2).await;
        let seen = figures.take();
        assert!(seen["leader_election_last_renewal_timestamp_seconds{name=fleet}"] > 0.0);
        assert_figures(
            &seen,
            &[
                ("session_locks{name=fleet}", 2.0),
                ("sessions{name=fleet}", 1.0),
                ("renewal_duration_seconds{name=fleet}", 2.0),
                ("store_requests_total{name=fleet,operation=create,outcome=ok}", 1.0),
                // The listing of the sessions.
                ("store_requests_total{name=fleet,operation=get,outcome=ok}", 2.0),
                ("store_requests_total{name=fleet,operation=get,outcome=missing}", 1.0),
                ("store_requests_total{name=fleet,operation=update,outcome=ok}", 2.0),
                ("master_status{name=fleet/x}", 1.0),
                ("master_status{name=fleet/y}", 1.0),
                ("terms_total{name=fleet/x}", 1.0),
                ("terms_total{name=fleet/y}", 1.0),
                ("transitions_total{name=fleet/x}", 1.0),
                ("transitions_total{name=fleet/y}", 1.0),
                ("store_requests_total{name=fleet/x,operation=create,outcome=ok}", 1.0),
                ("store_requests_total{name=fleet/x,operation=get,outcome=missing}", 1.0),
                ("store_requests_total{name=fleet/y,operation=create,outcome=ok}", 1.0),
                ("store_requests_total{name=fleet/y,operation=get,outcome=missing}", 1.0),
            ],
        );
        first.iter().for_each(|task| task.abort());
        sleep(RETRY).await;
        let seen = figures.take();
        assert_eq!(seen.get("leader_election_session_locks{name=fleet}"), None, "{seen:?}");
        assert_eq!(seen.get("leader_election_terms_ended_total{name=fleet/x,reason=cancelled}"), Some(&1.0));
        let _second = start("b");
        sleep(RETRY * 2).await;
        assert_eq!(figures.take().get("leader_election_sessions{name=fleet}"), Some(&2.0));
        sleep(DEADLINE * 2).await;
        let seen = figures.take();
        assert_eq!(seen.get("leader_election_session_takeovers_total{name=fleet}"), Some(&2.0), "{seen:?}");
        assert_eq!(seen.get("leader_election_session_locks{name=fleet}"), Some(&2.0));
        assert_eq!(seen.get("leader_election_sessions{name=fleet}"), Some(&1.0));
    });
}
