//! What a listing costs.

use futures_util::FutureExt as _;
use leaderelection::MemoryStore;
use leaderelection::implement::{ConditionalStore as _, Precondition};

use super::*;
use crate::lease::{Draft, Spec};
use crate::object::Object;

#[tokio::test(start_paused = true)]
async fn a_part_of_a_listing_costs_nothing_before_the_share_of_its_tenant() {
    let (store, place) = (MemoryStore::new(), Place { namespace: "default".to_owned(), name: "web".to_owned() });
    let draft = Draft { uid: None, resource_version: None, metadata: serde_json::Map::new(), spec: Spec::default() };
    let lease = Object::wanted(&place, None, &draft, Leases::now());
    store.put("default/web", lease.body(), &Precondition::Absent).await.unwrap();
    let listings = Listings::new(Arc::new(Leases::new(Arc::new(store), String::new())), Duration::ZERO);
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
