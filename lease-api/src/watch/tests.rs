//! What a listing costs.

use futures_util::{FutureExt as _, StreamExt as _};
use leaderelection::MemoryStore;
use leaderelection::implement::{ConditionalStore as _, Precondition};

use super::*;
use crate::lease::{Draft, Spec};
use crate::object::Object;

/// Listings of a store with one Lease.
async fn listings() -> (MemoryStore, Place, Arc<Listings>) {
    let (store, place) = (MemoryStore::new(), Place { namespace: "default".to_owned(), name: "web".to_owned() });
    write(&store, &place, &Precondition::Absent).await;
    let leases = Leases::new(Arc::new(store.clone()), String::new());
    (store, place, Arc::new(Listings::new(Arc::new(leases), Duration::from_secs(1))))
}

async fn write(store: &MemoryStore, place: &Place, condition: &Precondition) {
    let draft = Draft { uid: None, resource_version: None, metadata: serde_json::Map::new(), spec: Spec::default() };
    let lease = Object::wanted(place, None, &draft, Leases::now());
    store.put("default/web", lease.body(), condition).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn watches_of_a_tenant_read_changes_when_they_have_its_turn() {
    let (store, place, listings) = listings().await;
    let (shares, tenant) = (Shares::default(), Tenant::of(None, Some("default")));
    let later = after(Instant::now(), SLOWEST);
    let watch = listings.watch(None, Query::default(), later, Form::Lease, (&shares, &tenant)).await;
    let mut events = watch.unwrap().into_data_stream();
    assert!(events.next().await.is_some(), "the first event");
    let turns = shares.of(&tenant, Work::Changes);
    let taken = Arc::clone(&turns).acquire_many_owned(u32::try_from(turns.available_permits()).unwrap()).await;
    let version = store.get("default/web").await.unwrap().unwrap().version;
    write(&store, &place, &Precondition::Matches(version)).await;
    let minute = Duration::from_secs(60);
    assert!(tokio::time::timeout(minute, events.next()).await.is_err(), "others of the tenant have the turns");
    drop(taken);
    assert!(tokio::time::timeout(minute, events.next()).await.is_ok_and(|event| event.is_some()));
}

#[tokio::test(start_paused = true)]
async fn a_part_of_a_listing_costs_nothing_before_the_share_of_its_tenant() {
    let (_, place, listings) = listings().await;
    let (shares, tenant) = (Shares::default(), Tenant::of(None, Some("default")));
    let later = || after(Instant::now(), SLOWEST);
    let first = listings.answer(&None, &Query::default(), (&shares, &tenant), later()).await.unwrap();
    let query = Query::parse(&format!("continue={}/a/a", first.version)).unwrap();
    drop(first);
    let mut taken = Vec::new();
    while let Ok(share) = shares.try_take(&tenant, Work::Listing) {
        taken.push(share);
    }
    let copies = || Arc::strong_count(listings.shown().at(&place).unwrap());
    let before = copies();
    let mut part = Box::pin(listings.answer(&None, &query, (&shares, &tenant), later()));
    assert!(part.as_mut().now_or_never().is_none(), "it waits");
    assert_eq!(copies(), before);
    taken.pop();
    assert_eq!(part.await.unwrap().found.len(), 1);
}
