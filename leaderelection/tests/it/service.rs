//! Services beside a campaign, and the answers to probes.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use leaderelection::{CampaignError, DefaultLeaderElector, Elector, LeaderCallbacks, MemoryStore, Probes};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::support::{Journal, LEASE, RETRY, TestLock, builder, elector, plant, record, stored};

fn releasing(store: &MemoryStore, journal: &Journal) -> DefaultLeaderElector {
    let config = builder(TestLock::new(store, "a"), journal.callbacks()).release_on_cancel(true);
    DefaultLeaderElector::new(config.build().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_service_begins_before_the_term_and_is_told_to_stop_after_the_release() {
    let (store, journal, shutdown) = (MemoryStore::new(), Journal::default(), CancellationToken::new());
    plant(&store, &record("b", LEASE, 3)).await;
    let (written, at_stop) = (journal.clone(), store.clone());
    let service = |stop: CancellationToken| async move {
        written.write("service");
        stop.cancelled().await;
        sleep(RETRY).await;
        written.write(format!("service stops, released: {}", stored(&at_stop).await.record.is_released()));
    };
    let elector = releasing(&store, &journal);
    let stopping = async {
        elector.handle().elected().await.unwrap();
        shutdown.cancel();
    };
    let (campaign, ()) = tokio::join!(elector.campaign_with(shutdown.clone().cancelled_owned(), service), stopping);
    campaign.unwrap();
    assert_eq!(journal.entries(), ["service", "start 4", "work ended", "stop", "service stops, released: true"]);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_fails_or_panics_ends_the_campaign_gracefully() {
    for (panics, reason) in [(false, "the port is taken"), (true, "panic")] {
        let (store, journal) = (MemoryStore::new(), Journal::default());
        let service = |_| async move {
            sleep(RETRY * 3).await;
            assert!(!panics, "a bug in the service");
            Err::<(), _>("the port is taken")
        };
        let elector = releasing(&store, &journal);
        let shutdown = CancellationToken::new();
        let ended = elector.campaign_with(shutdown.clone().cancelled_owned(), service).await;
        let Err(CampaignError::Service(error)) = ended else { panic!("{ended:?}") };
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(journal.entries(), ["start 1", "work ended", "stop"]);
        assert!(stored(&store).await.record.is_released());
        assert!(!shutdown.is_cancelled(), "the caller's own token");
    }
}

#[tokio::test(start_paused = true)]
async fn a_complete_service_leaves_and_a_dropped_campaign_leaves_none() {
    let (store, journal) = (MemoryStore::new(), Journal::default());
    let elector = releasing(&store, &journal);
    assert!(timeout(LEASE, elector.campaign_with(pending(), |_| async {})).await.is_err());
    assert_eq!(journal.entries()[0], "start 1");

    let alive = Arc::new(());
    let held = Arc::clone(&alive);
    let service = |_| pending::<()>().map(move |()| drop(held));
    assert!(timeout(LEASE * 2, elector.campaign_with(pending(), service)).await.is_err());
    tokio::task::yield_now().await;
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[tokio::test(start_paused = true)]
async fn probes_tell_health_readiness_and_leadership_apart() {
    let store = MemoryStore::new();
    plant(&store, &record("b", LEASE, 3)).await;
    let elector = elector(TestLock::new(&store, "a"), Journal::default().callbacks());
    let probes = Probes::new(elector.handle(), elector.health_check(Duration::from_secs(1)));
    let codes = || ["/healthz", "/readyz", "/leading", "/"].map(|path| probes.answer(path).0);
    assert_eq!(codes(), [200, 503, 503, 404]);
    assert!(probes.answer("/readyz").1.starts_with("memory:lock has not read its lock yet"));

    let run = elector.run(pending());
    tokio::pin!(run);
    let mut handle = elector.handle();
    tokio::select! {
        _ = &mut run => unreachable!("leads until it is cancelled"),
        changed = handle.changed() => changed.unwrap(),
    }
    assert_eq!(codes(), [200, 200, 503, 404], "b leads");
    tokio::select! {
        _ = &mut run => unreachable!("leads until it is cancelled"),
        elected = handle.elected() => drop(elected.unwrap()),
    }
    assert_eq!(codes(), [200, 200, 200, 404]);
    // The elector is stuck: it is not polled.
    tokio::time::advance(LEASE + Duration::from_secs(2)).await;
    assert_eq!(codes(), [500, 200, 503, 404]);
    assert!(probes.answer("/healthz").1.contains("restart this process"));
}

/// What the work has spawned may still run after the work was dropped.
#[tokio::test(start_paused = true)]
async fn a_process_whose_work_was_dropped_is_not_ready_until_it_leads_again() {
    let store = MemoryStore::new();
    let lock = TestLock::new(&store, "a");
    let callbacks = LeaderCallbacks::new().on_start_leading(|_| pending::<()>());
    let elector = elector(lock, callbacks);
    let probes = Probes::new(elector.handle(), elector.health_check(LEASE));
    let mut handle = elector.handle();
    let (stop, running) = (CancellationToken::new(), handle.clone());
    let campaign = tokio::spawn({
        let stop = stop.clone();
        async move { elector.campaign(stop.cancelled_owned()).await }
    });
    handle.elected().await.unwrap();
    assert_eq!(probes.answer("/readyz"), (200, "ok".to_owned()));
    running.step_down();
    while probes.answer("/readyz").0 == 200 {
        handle.changed().await.unwrap();
    }
    let (code, why) = probes.answer("/readyz");
    assert!(code == 503 && why.contains("tasks of it may still run; restart this process"), "{why}");
    handle.elected().await.unwrap();
    assert_eq!(probes.answer("/readyz"), (200, "ok".to_owned()));
    stop.cancel();
    campaign.await.unwrap().unwrap();
}
