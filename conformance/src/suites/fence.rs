//! The suite for the fence: two leaders write one object, in every order in which the store can see their requests.

mod gate;
mod network;
mod schedule;

use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use leaderelection::causes::with_causes;
use leaderelection::clock::{Clock, LocalInstant};
use leaderelection::fence::{FencedError, FencedObject, FencedValue};
use leaderelection::implement::ConditionalStore;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::contract::Breach;
use crate::patience::patiently;

use gate::Gated;
use schedule::Schedules;

const ACKNOWLEDGED: &str = "a fenced object holds every write that was acknowledged, once, and nothing else";
const CLAIMED: &str = "after a claim, no write with a smaller token changes the object";
const NEWEST: &str = "a fenced object holds the largest token that has written";
const REFUSED: &str = "a write fails only if its token is stale";

const OLDER: u64 = 1;
const NEWER: u64 = 2;

/// The acts of two leaders on one object, and the faults of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duel {
    /// The number of writes that each leader tries, one after the other. Default: 2, which makes 235 orders of
    /// some 14 requests.
    pub writes: u32,
    /// Loses the answer to one write, in turn to every write. The write has happened, has not happened, or
    /// happens later: before any other request, or when both leaders have finished. This setting makes a
    /// hundred times as many orders. Default: `false`.
    pub loses_an_answer: bool,
}

impl Default for Duel {
    fn default() -> Self {
        Self { writes: 2, loses_an_answer: false }
    }
}

/// Checks that a [`FencedObject`] on `store` refuses an earlier leader, and loses no write of the newer leader.
///
/// Two leaders with the tokens 1 and 2 append to one object; the newer leader claims the object first. The
/// suite runs every order in which their requests can reach the store. Each run has an object of its own under
/// `prefix`, which is deleted afterwards. In the end, the object must contain all acknowledged writes and no
/// others, those of the older leader first. Returns the number of orders.
///
/// A call that the store rejects is repeated.
///
/// # Panics
///
/// If a write is lost or comes too late, or if the store answers with errors.
pub async fn check_fence(store: impl ConditionalStore, prefix: &str, duel: Duel) -> usize {
    let store = Arc::new(store);
    let mut schedules = Schedules::default();
    let mut orders = 0;
    loop {
        let key = format!("{prefix}/fence/{orders}");
        run(&store, &key, &mut schedules, duel).await;
        delete(&*store, &key).await;
        orders += 1;
        if !schedules.advance() {
            return orders;
        }
    }
}

type Log<S> = FencedObject<S, Vec<Entry>>;

/// One line of the object that both leaders append to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    token: u64,
    number: u32,
}

/// The results of one leader's writes.
#[derive(Debug, Default)]
struct Reported {
    acknowledged: Vec<Entry>,
    errors: Vec<FencedError>,
}

async fn run<S: ConditionalStore>(store: &Arc<S>, key: &str, schedules: &mut Schedules, duel: Duel) {
    let ((older_way, older_requests), (newer_way, newer_requests)) = (Gated::new(store), Gated::new(store));
    let (older, newer) = (Log::new(older_way, key), Log::new(newer_way, key));
    let (older, newer) = (older.with_clock(Hasty::default()), newer.with_clock(Hasty::default()));
    let older = tokio::spawn(async move { append(&older, OLDER, duel.writes).await });
    let newer = tokio::spawn(async move { (newer.claim(NEWER).await, append(&newer, NEWER, duel.writes).await) });
    let leaders = [("the older leader", older_requests), ("the newer leader", newer_requests)];
    let history = network::carry(store, leaders, schedules, duel.loses_an_answer).await;

    let older = older.await.unwrap_or_else(|error| panic::resume_unwind(error.into_panic()));
    let (claimed, newer) = newer.await.unwrap_or_else(|error| panic::resume_unwind(error.into_panic()));
    let object = format!("{} ({})", store.describe(key), history.join("; "));
    let found = Log::new(Arc::clone(store), key).read().await;
    judge(&older, &newer, claimed, found).unwrap_or_else(|breach| panic!("{object}: {breach}"));
}

async fn append<S: ConditionalStore>(log: &Log<S>, token: u64, writes: u32) -> Reported {
    let mut told = Reported::default();
    for number in 1..=writes {
        let entry = Entry { token, number };
        let append = |entries: Option<Vec<Entry>>| {
            let mut entries = entries.unwrap_or_default();
            entries.push(entry.clone());
            entries
        };
        match log.update(token, append).await {
            Ok(_) => told.acknowledged.push(entry),
            Err(error) => told.errors.push(error),
        }
    }
    told
}

fn judge(
    older: &Reported,
    newer: &Reported,
    claimed: Result<Option<Vec<Entry>>, FencedError>,
    found: Result<FencedValue<Vec<Entry>>, FencedError>,
) -> Result<(), Breach> {
    let refused = |error: &FencedError| Breach::new(with_causes(error), REFUSED);
    let claimed = claimed.map_err(|error| refused(&error))?.unwrap_or_default();
    let found = found.map_err(|error| refused(&error))?;
    let is_stale =
        |error: &FencedError| error.stale().is_some_and(|it| (it.token, it.highest) == (OLDER.into(), NEWER.into()));
    let mut unexpected = older.errors.iter().filter(|error| !is_stale(error)).chain(&newer.errors);
    if let Some(error) = unexpected.next() {
        return Err(refused(error));
    }
    let acknowledged = [&older.acknowledged[..], &newer.acknowledged].concat();
    let entries = found.value.as_deref().unwrap_or_default();
    let what = format!("it holds {entries:?}, and {acknowledged:?} were acknowledged");
    Breach::unless(entries == acknowledged, what, ACKNOWLEDGED)?;
    let what = format!("{claimed:?} were claimed, and {:?} are before the newer leader's writes", older.acknowledged);
    Breach::unless(claimed == older.acknowledged, what, CLAIMED)?;
    Breach::unless(found.token == Some(NEWER.into()), format!("it holds the token {:?}", found.token), NEWEST)
}

async fn delete(store: &impl ConditionalStore, key: &str) {
    let Ok(Some(object)) = patiently(sleep, || store.get(key)).await else { return };
    // The check has passed. A remaining object does not change the result.
    drop(patiently(sleep, || store.delete(key, Some(&object.version))).await);
}

/// A clock on which all pauses end at once, so that only the network decides the order.
#[derive(Debug, Default)]
struct Hasty(AtomicU64);

#[async_trait]
impl Clock for Hasty {
    fn now(&self) -> LocalInstant {
        LocalInstant::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn wall_time(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH
    }

    async fn sleep_until(&self, deadline: LocalInstant) -> LocalInstant {
        self.0.fetch_max(deadline.as_nanos(), Ordering::Relaxed);
        self.now()
    }
}
