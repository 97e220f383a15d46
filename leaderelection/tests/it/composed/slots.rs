//! The settings and the callbacks of its session that a slot has.

use std::sync::Arc;

use leaderelection::clock::TokioClock;
use leaderelection::history::{self, Retention};
use leaderelection::implement::ConditionalStore as _;
use leaderelection::sessions::Slots;
use leaderelection::{LeaderHandle, MemoryStore, Session};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{ADDRESSES, BOUND, assert_addresses, hand_over_behind_a_fence, is_led_by, shows};
use crate::metrics::recorded;

/// A process that competes for the only slot.
struct Member {
    slots: Arc<Slots>,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Member {
    fn start(store: &MemoryStore, identity: &str) -> Self {
        let session = Session::builder(store.clone(), "fleet", identity).clock(TokioClock::new()).name("fleet");
        let session = session.advertise(ADDRESSES[0]).advertise_to_clients(ADDRESSES[1]);
        let session = session.keep_history(Retention::terms(10)).build().unwrap();
        let (slots, stop) = (Arc::new(session.slots("worker", 1).unwrap()), CancellationToken::new());
        let (competing, token) = (Arc::clone(&slots), stop.clone());
        let work = async move {
            // A slot that is handed over is lost before its work is complete.
            while competing
                .run_while_leading(
                    token.clone().cancelled_owned(),
                    |slot| async move { slot.leadership().lost().await },
                )
                .await
                .is_ok()
            {}
        };
        tokio::spawn(work);
        let token = stop.clone();
        let running = tokio::spawn(async move { session.run(token.cancelled_owned()).await.unwrap() });
        Self { slots, stop, running }
    }

    fn handle(&self) -> LeaderHandle {
        self.slots.handle(0).unwrap()
    }

    async fn stop(self) {
        self.stop.cancel();
        timeout(BOUND, self.running).await.unwrap().unwrap();
    }
}

/// A process that holds the slot, and one that waits for it and knows the holder.
async fn two(store: &MemoryStore) -> [Member; 2] {
    let a = Member::start(store, "a");
    shows(&mut a.handle(), LeaderHandle::is_leader).await;
    let b = Member::start(store, "b");
    shows(&mut b.handle(), is_led_by("a")).await;
    [a, b]
}

#[tokio::test(start_paused = true)]
async fn a_slot_shows_the_address_of_its_holder() {
    let [_a, b] = two(&MemoryStore::new()).await;
    assert_addresses(&b.handle());
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_handed_over_behind_a_fence() {
    let store = MemoryStore::new();
    let [a, b] = two(&store).await;
    hand_over_behind_a_fence(store, &a.handle(), &mut b.handle()).await;
}

#[tokio::test(start_paused = true)]
async fn a_slot_has_a_history() {
    let store = MemoryStore::new();
    let [a, b] = two(&store).await;
    a.stop().await;
    shows(&mut b.handle(), LeaderHandle::is_leader).await;
    let kept = store.get(&history::key_of("fleet/locks/worker/0")).await.unwrap().unwrap();
    let kept = history::parse(&kept.body).unwrap();
    let kept: Vec<_> = kept.iter().map(|term| (term.holder.as_str(), term.fencing_token)).collect();
    assert_eq!(kept, [("a", 1.into())]);
}

#[test]
fn a_slot_is_told_in_the_figures() {
    recorded(|figures| async move {
        let holder = Member::start(&MemoryStore::new(), "a");
        shows(&mut holder.handle(), LeaderHandle::is_leader).await;
        let seen = figures.take();
        assert_eq!(seen.get("leader_election_master_status{name=fleet/worker/0}"), Some(&1.0), "{seen:?}");
        assert_eq!(seen.get("leader_election_terms_total{name=fleet/worker/0}"), Some(&1.0), "{seen:?}");
    });
}
