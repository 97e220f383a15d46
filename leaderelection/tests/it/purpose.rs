//! The service that owns a lock: two deployments that use one lock by accident.

use leaderelection::admin::force_release;
use leaderelection::lock::IncompatibleRecord;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, LeaderElectionRecord, LeaderHandle, Majority,
    MemoryLock, MemoryStore, ObjectStoreBasedLock, Session, StoreErrorKind,
};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::support::{Journal, LEASE, builder};

fn lock(store: &MemoryStore, key: &str, identity: &str) -> MemoryLock {
    MemoryLock::new(store.clone(), key, identity)
}

/// Starts a campaign that holds its lock, and releases it when it is cancelled.
fn campaign(
    lock: impl ObjectStoreBasedLock,
    purpose: Option<&str>,
) -> (LeaderHandle, CancellationToken, JoinHandle<()>) {
    let mut config = builder(lock, Journal::default().callbacks()).release_on_cancel(true);
    if let Some(purpose) = purpose {
        config = config.service(purpose);
    }
    let elector = DefaultLeaderElector::new(config.build().unwrap());
    let (handle, cancel) = (elector.handle(), CancellationToken::new());
    let token = cancel.clone();
    (handle, cancel, tokio::spawn(async move { elector.campaign(token.cancelled_owned()).await.unwrap() }))
}

async fn record(store: &MemoryStore, key: &str) -> LeaderElectionRecord {
    lock(store, key, "onlooker").get().await.unwrap().unwrap().record
}

#[tokio::test(start_paused = true)]
async fn a_candidate_for_another_purpose_never_leads_and_tells_why() {
    let store = MemoryStore::new();
    let (mail, cancel, ended) = campaign(lock(&store, "a", "mail-1"), Some("mail"));
    sleep(LEASE).await;
    assert!(mail.is_leader());
    let (mut billing, ..) = campaign(lock(&store, "a", "billing-1"), Some("billing"));
    let error = timeout(LEASE * 4, billing.next_error()).await.unwrap().unwrap();
    assert_eq!(error.kind, StoreErrorKind::Unreadable);
    for part in ["for the service \"mail\"", "this candidate is for \"billing\"", "release --force"] {
        assert!(error.message.contains(part), "{}", error.message);
    }
    // The service outlives the term, the release, and a term of a candidate that names none.
    cancel.cancel();
    ended.await.unwrap();
    let (plain, cancel, ended) = campaign(lock(&store, "a", "plain"), None);
    sleep(LEASE * 4).await;
    assert!(plain.is_leader() && !billing.is_leader());
    cancel.cancel();
    ended.await.unwrap();
    let released = record(&store, "a").await;
    assert_eq!((released.service().as_deref(), released.is_released()), (Some("mail"), true));
    let (mail, ..) = campaign(lock(&store, "a", "mail-2"), Some("mail"));
    sleep(LEASE * 4).await;
    assert!(mail.is_leader() && !billing.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_record_without_a_purpose_is_for_everybody_and_gets_one() {
    let store = MemoryStore::new();
    let (_, cancel, ended) = campaign(lock(&store, "a", "plain"), None);
    sleep(LEASE).await;
    assert_eq!(record(&store, "a").await.service(), None);
    cancel.cancel();
    ended.await.unwrap();
    let (mail, ..) = campaign(lock(&store, "a", "mail-1"), Some("mail"));
    sleep(LEASE).await;
    assert!(mail.is_leader());
    assert_eq!(record(&store, "a").await.service().as_deref(), Some("mail"));
}

#[tokio::test(start_paused = true)]
async fn an_operator_ends_the_claim_of_a_purpose() {
    let store = MemoryStore::new();
    let (_, cancel, ended) = campaign(lock(&store, "a", "mail-1"), Some("mail"));
    sleep(LEASE).await;
    cancel.cancel();
    ended.await.unwrap();
    let (billing, ..) = campaign(lock(&store, "a", "billing-1"), Some("billing"));
    sleep(LEASE * 4).await;
    assert!(!billing.is_leader());
    let seen = record(&store, "a").await;
    let after = force_release(&lock(&store, "a", "operator"), &seen).await.unwrap().after;
    assert_eq!((after.service(), after.leader_transitions), (None, seen.leader_transitions));
    sleep(LEASE * 4).await;
    assert!(billing.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_lock_of_several_has_one_purpose() {
    let store = MemoryStore::new();
    let parts = |identity: &str| Majority::of(["a", "b", "c"].map(|key| lock(&store, key, identity))).unwrap();
    let (_, cancel, ended) = campaign(parts("mail-1"), Some("mail"));
    sleep(LEASE).await;
    cancel.cancel();
    ended.await.unwrap();
    let (billing, ..) = campaign(parts("billing-1"), Some("billing"));
    sleep(LEASE * 4).await;
    assert!(!billing.is_leader());
    // A part that was away still names the old service.
    for key in ["b", "c"] {
        let seen = record(&store, key).await;
        force_release(&lock(&store, key, "operator"), &seen).await.unwrap();
    }
    let stale = record(&store, "a").await;
    assert_eq!(
        IncompatibleRecord::of(&stale, Some("mail")).map(|parts| parts.to_string().contains("this lock alone")),
        Some(true)
    );
    // The claim of one part blocks nobody (M12).
    sleep(LEASE * 4).await;
    assert!(billing.is_leader());
    for key in ["a", "b", "c"] {
        assert_eq!(record(&store, key).await.service().as_deref(), Some("billing"), "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_fleets_of_sessions_share_no_lock() {
    let store = MemoryStore::new();
    let join = |identity: &str, purpose: &str| {
        let session = Session::builder(store.clone(), "fleet", identity)
            .clock(leaderelection::clock::TokioClock::new())
            .service(purpose)
            .build()
            .unwrap();
        let elector = session.elector("x", LeaderCallbacks::new()).unwrap();
        let (handle, cancel) = (elector.handle(), CancellationToken::new());
        let token = cancel.clone();
        let member = tokio::spawn(async move {
            let (campaign, run) = tokio::join!(
                elector.campaign(token.clone().cancelled_owned()),
                session.run(token.clone().cancelled_owned())
            );
            campaign.and(run).unwrap();
        });
        (handle, cancel, member)
    };
    let (mut mail, cancel, ended) = join("mail-1", "mail");
    mail.elected().await.unwrap();
    let (mut billing, ..) = join("billing-1", "billing");
    let error = timeout(LEASE * 4, billing.next_error()).await.unwrap().unwrap();
    assert!(error.message.contains("for the service \"mail\""), "{}", error.message);
    cancel.cancel();
    ended.await.unwrap();
    sleep(LEASE * 10).await;
    assert!(!billing.is_leader());
    let (mut heir, ..) = join("mail-2", "mail");
    timeout(LEASE * 10, heir.elected()).await.unwrap().unwrap();
}

#[test]
fn a_purpose_is_a_word_of_limited_length() {
    for (purpose, problem) in
        [("", "is empty"), ("a\nb", "has, as character 2, U+000A"), ("\"a\"", "stands in quotation marks")]
    {
        let config = LeaderElectionConfig::builder(lock(&MemoryStore::new(), "a", "b"), LeaderCallbacks::new());
        let error = config.service(purpose).build().unwrap_err().to_string();
        assert!(error.starts_with("service (") && error.contains(problem), "{error}");
    }
}
