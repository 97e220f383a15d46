//! A session in simulated time, over a store that fails on demand.

use leaderelection::clock::TokioClock;
use leaderelection::implement::ConditionalStore as _;
use leaderelection::{LeaderElectionRecord, Session, SessionBuilder};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::Faulty;

/// Reads the record of a lock or of a session.
pub(super) async fn record(store: &Faulty, key: &str) -> Option<LeaderElectionRecord> {
    let found = store.inner.get(key).await.unwrap()?;
    let longest = leaderelection::lock::DEFAULT_MAX_LEASE_DURATION;
    Some(leaderelection::sessions::machine::read_record(&found.body, longest).unwrap())
}

pub(super) fn builder(store: &Faulty, identity: &str) -> SessionBuilder {
    Session::builder(store.clone(), "fleet", identity).clock(TokioClock::new())
}

pub(super) fn session(store: &Faulty, identity: &str) -> Session {
    builder(store, identity).build().unwrap()
}

/// Runs a session on a task of its own.
pub(super) fn run(session: &Session, cancel: &CancellationToken) -> JoinHandle<()> {
    let (session, cancel) = (session.clone(), cancel.clone());
    tokio::spawn(async move { session.run(cancel.cancelled_owned()).await.unwrap() })
}
