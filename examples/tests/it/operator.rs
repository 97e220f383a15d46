use std::process::Command;
use std::sync::Arc;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use leaderelection::fence::FencedObject;
use leaderelection::{ConditionalStore, Precondition};
use leaderelection_backends::url::Location;

use leaderelection_integration_tests::program::{Program, TIMING};

struct Replica {
    program: Program,
    url: String,
}

impl Replica {
    fn start(lock: &str) -> Self {
        let args = [&[lock, "--listen", "127.0.0.1:0"], TIMING.as_slice()].concat();
        let mut program = Program::start(Command::new(env!("CARGO_BIN_EXE_operator")).args(&args));
        let line = program.wait_for_line("serving on ");
        Self { program, url: line.trim_start_matches("serving on ").to_owned() }
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
        let response = client.get(format!("{}{path}", self.url).parse().unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }
}

async fn put(store: &Arc<dyn ConditionalStore>, key: &str, body: &'static str) {
    let found = store.get(key).await.unwrap();
    let precondition = found.map_or(Precondition::Absent, |found| Precondition::Matches(found.version));
    store.put(key, Bytes::from_static(body.as_bytes()), &precondition).await.unwrap();
}

async fn assert_actual(store: &Arc<dyn ConditionalStore>, token: u64, state: &str) {
    let actual = FencedObject::<_, String>::new(Arc::clone(store), "lock.actual").read().await.unwrap();
    assert_eq!((actual.token, actual.value.as_deref()), (Some(token), Some(state)));
}

#[tokio::test]
async fn one_replica_reconciles_and_the_other_takes_over() {
    let directory = tempfile::tempdir().unwrap();
    let lock = format!("file://{}/lock", directory.path().display());
    let store = lock.parse::<Location>().unwrap().open().await.unwrap();
    put(&store, "lock.desired", "three").await;

    let mut first = Replica::start(&lock);
    first.program.wait_for_line("leading with fencing token 0");
    first.program.wait_for_line("reconciled: three");
    assert_actual(&store, 0, "three").await;

    let mut second = Replica::start(&lock);
    for replica in [&first, &second] {
        assert_eq!(replica.get("/healthz").await, (200, "ok".to_owned()));
    }
    assert_eq!(first.get("/readyz").await, (200, "ok".to_owned()));
    let (_, metrics) = first.get("/metrics").await;
    assert!(metrics.contains("leader_election_master_status{name=\"operator\"} 1"), "{metrics}");
    assert!(metrics.contains("operator_reconciliations_total"), "{metrics}");

    first.program.terminate();
    second.program.wait_for_line("leading with fencing token 1");
    assert!(first.program.wait().success());
    put(&store, "lock.desired", "four").await;
    second.program.wait_for_line("reconciled: four");
    assert_actual(&store, 1, "four").await;
    let (_, metrics) = second.get("/metrics").await;
    assert!(metrics.contains("leader_election_master_status{name=\"operator\"} 1"), "{metrics}");
}
