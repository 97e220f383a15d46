//! Answers of an API server about a Lease: a line with the status, and the body.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{Method, StatusCode};
use leaderelection::LeaderElectionRecord;
use leaderelection::implement::{ConditionalStore as _, ConditionalStoreExt, Precondition};
use leaderelection_backends::kubernetes::LeaseStore;
use leaderelection_serving::sockets::Serving;
use serde_json::Value;

use crate::runtime::wait;
use crate::target::uncounted;

/// The name of the Lease.
const NAME: &str = "scheduler";

/// The answer of the API server to reads.
type Answer = Arc<Mutex<(StatusCode, Bytes)>>;

struct World {
    store: LeaseStore,
    answer: Answer,
    _server: Serving,
}

thread_local! {
    // On the thread of the target, so that its runtime drives the server too.
    static WORLD: World = uncounted(|| wait(World::begin()));
}

pub(super) fn lease(input: &[u8]) {
    WORLD.with(|world| {
        let (status, body) = input.split_at(input.iter().position(|byte| *byte == b'\n').unwrap_or(0));
        let status = StatusCode::from_bytes(status).unwrap_or(StatusCode::OK);
        // Answers below 200 are none.
        let status = if status.as_u16() < 200 { StatusCode::OK } else { status };
        *world.answer.lock().unwrap() = (status, Bytes::copy_from_slice(body));
        wait(world.read_and_write());
    });
}

impl World {
    async fn begin() -> Self {
        let answer = Answer::default();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let routes = Router::new().fallback({
            let answer = Arc::clone(&answer);
            async move |method: Method, body: Bytes| reply(&answer, &method, &body)
        });
        let server = Serving::start(listener, None, routes, Duration::from_secs(60)).unwrap();
        let url = format!("http://{}", server.address().unwrap()).parse().unwrap();
        let store = LeaseStore::new(kube::Config::new(url), "default").unwrap();
        Self { store, answer, _server: server }
    }

    async fn read_and_write(&self) {
        let _ = self.store.list("").await;
        let Ok(Some(found)) = self.store.get(NAME).await else { return };
        let precondition = Precondition::Matches(found.version);
        // Not every body is a record, and no other is written.
        if self.store.put(NAME, found.body.clone(), &precondition).await.is_ok() {
            let again = self.store.get(NAME).await.unwrap().unwrap();
            assert_eq!(record(&again.body), record(&found.body));
        }
    }
}

fn record(body: &[u8]) -> LeaderElectionRecord {
    LeaderElectionRecord::from_json(body, Duration::MAX).unwrap()
}

/// Answers a read, or keeps the Lease that is written, as an API server does.
fn reply(answer: &Mutex<(StatusCode, Bytes)>, method: &Method, body: &[u8]) -> (StatusCode, Bytes) {
    let mut answer = answer.lock().unwrap();
    if *method == Method::PUT {
        let mut lease: Value = serde_json::from_slice(body).unwrap();
        lease["metadata"]["resourceVersion"] = "written".into();
        *answer = (StatusCode::OK, lease.to_string().into());
    }
    answer.clone()
}
