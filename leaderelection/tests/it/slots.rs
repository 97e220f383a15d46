//! Slots: n holders at a time, each with a number.

mod oracle;

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leaderelection::clock::TokioClock;
use leaderelection::implement::ConditionalStoreExt as _;
use leaderelection::sessions::Slots;
use leaderelection::{Elector, LeaderCallbacks, MemoryStore, RunError, Session};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// The holder of each slot.
type Held = Arc<Mutex<BTreeMap<u32, &'static str>>>;

const LEASE: Duration = Duration::from_secs(15);

fn session(store: &MemoryStore, identity: &str) -> Session {
    Session::builder(store.clone(), "fleet", identity).clock(TokioClock::new()).build().unwrap()
}

/// One process that works in a slot until its slot is lost.
struct Process {
    shutdown: CancellationToken,
    running: JoinHandle<()>,
    work: JoinHandle<Result<u32, RunError>>,
}

impl Process {
    /// Starts a process that competes for three slots.
    fn start(store: &MemoryStore, identity: &'static str, held: &Held) -> Self {
        Self::of(store, identity, 3, held)
    }

    fn of(store: &MemoryStore, identity: &'static str, count: u32, held: &Held) -> Self {
        let session = session(store, identity);
        let slots = session.slots("worker", count).unwrap();
        let (shutdown, held) = (CancellationToken::new(), Arc::clone(held));
        let token = shutdown.clone();
        let work = tokio::spawn(async move {
            let work = move |slot: leaderelection::sessions::Slot| async move {
                let before = held.lock().unwrap().insert(slot.number(), identity);
                assert_eq!(before, None, "slot {} has two holders", slot.number());
                slot.leadership().lost().await;
                held.lock().unwrap().remove(&slot.number());
                slot.number()
            };
            slots.run_while_leading(token.cancelled_owned(), work).await
        });
        let token = shutdown.clone();
        let running = tokio::spawn(async move { session.run(token.cancelled_owned()).await.unwrap() });
        Self { shutdown, running, work }
    }

    async fn stop(self) -> Result<u32, RunError> {
        self.shutdown.cancel();
        self.running.await.unwrap();
        self.work.await.unwrap()
    }
}

async fn until(held: &Held, holds: impl Fn(&BTreeMap<u32, &str>) -> bool) {
    let begun = Instant::now();
    while !holds(&held.lock().unwrap()) {
        assert!(begun.elapsed() < LEASE * 10, "{:?}", held.lock().unwrap());
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn as_many_hold_a_slot_as_there_are_slots() {
    let (store, held) = (MemoryStore::new(), Held::default());
    let mut processes: BTreeMap<_, _> =
        ["a", "b", "c", "d", "e"].into_iter().map(|name| (name, Process::start(&store, name, &held))).collect();
    until(&held, |held| held.len() == 3).await;
    sleep(LEASE * 20).await;
    let before = held.lock().unwrap().clone();
    assert_eq!(before.keys().collect::<Vec<_>>(), [&0, &1, &2]);

    // A holder that ends gracefully is replaced in its slot, and nobody else moves.
    let ended = before[&1];
    assert_eq!(processes.remove(ended).unwrap().stop().await, Ok(1));
    until(&held, |held| held.len() == 3).await;
    let after = held.lock().unwrap().clone();
    assert_eq!((after[&0], after[&2]), (before[&0], before[&2]));
    assert!(after[&1] != ended);

    // The slots of two holders that end at the same time are not both taken by the one that waits.
    for slot in [0, 2] {
        assert_eq!(processes.remove(after[&slot]).unwrap().stop().await, Ok(slot));
    }
    until(&held, |held| held.len() == 2).await;
    sleep(LEASE * 2).await;
    let last = held.lock().unwrap().clone();
    assert_eq!(last.len(), 2);
    assert_eq!(last[&1], after[&1]);
}

#[tokio::test(start_paused = true)]
async fn the_free_slot_with_the_smallest_number_comes_first() {
    let (store, held) = (MemoryStore::new(), Held::default());
    let _first = Process::start(&store, "a", &held);
    until(&held, |held| held.contains_key(&0)).await;
    let _second = Process::start(&store, "b", &held);
    until(&held, |held| held.contains_key(&1)).await;
    assert_eq!(*held.lock().unwrap(), BTreeMap::from([(0, "a"), (1, "b")]));
}

#[tokio::test(start_paused = true)]
async fn who_holds_a_slot_competes_for_no_other() {
    let (store, held) = (MemoryStore::new(), Held::default());
    let _only = Process::start(&store, "a", &held);
    until(&held, |held| held.contains_key(&0)).await;
    sleep(LEASE * 4).await;
    let written: Vec<_> = store.list("fleet/locks/").await.unwrap().into_iter().map(|listed| listed.key).collect();
    assert_eq!(written, ["fleet/locks/worker/0"]);
}

#[tokio::test(start_paused = true)]
async fn the_last_of_many_slots_is_found_without_a_wait_for_each_slot_before_it() {
    const SLOTS: u32 = 30;
    let (store, held) = (MemoryStore::new(), Held::default());
    let holder = session(&store, "a");
    let callbacks = LeaderCallbacks::new().on_start_leading(|leadership| async move { leadership.lost().await });
    let running = holder.clone();
    tokio::spawn(async move { running.run(pending()).await });
    for slot in 0..SLOTS - 1 {
        let elector = holder.elector(format!("worker/{slot}"), callbacks.clone()).unwrap();
        let mut handle = elector.handle();
        tokio::spawn(async move { elector.run(pending()).await });
        handle.elected().await.unwrap();
    }
    let begun = Instant::now();
    let _last = Process::of(&store, "b", SLOTS, &held);
    until(&held, |held| held.contains_key(&(SLOTS - 1))).await;
    assert!(begun.elapsed() < LEASE, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_slot_without_work_is_not_kept() {
    let store = MemoryStore::new();
    let session = session(&store, "a");
    let slots: Slots = session.slots("worker", 2).unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let outcome = slots.run_while_leading(cancel.cancelled_owned(), |slot| async move { slot.number() }).await;
    assert_eq!(outcome, Err(RunError::Cancelled));
    assert!(slots.handle(1).is_some_and(|handle| !handle.is_leader()));
    assert!(slots.handle(2).is_none());
}

#[test]
fn wrong_slots_are_refused() {
    let store = MemoryStore::new();
    let session = Session::builder(store, "fleet", "a").build().unwrap();
    let refusal = |name: &str, count| session.slots(name, count).unwrap_err().to_string();
    assert_eq!(refusal("worker", 0), "slots (0) must be at least 1");
    let _slots = session.slots("worker", 2).unwrap();
    let taken = refusal("worker", 3);
    assert!(taken.starts_with("slots (\"worker\"): the session has an elector for the lock \"worker/0\""), "{taken}");
}
