//! Clients with retries, and calls over gRPC: these too send one request for each call.

use std::time::Duration;

use google_cloud_gax::exponential_backoff::{ExponentialBackoff, ExponentialBackoffBuilder};
use google_cloud_gax::options::RequestOptionsBuilder as _;
use google_cloud_gax::retry_policy::{AlwaysRetry, RetryPolicyExt as _};
use google_cloud_storage::builder::storage::ClientBuilder;
use leaderelection_backends::gcs::GcsStore;
use leaderelection_integration_tests::servers::fake_gcs::{BUCKET, FakeGcs, Fault, Options};
use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer};

use super::{CONTROL_CALLS, config};
use crate::every_store::CloudStore as _;
use crate::every_store::attempts::assert_given_up;

fn quick() -> ExponentialBackoff {
    let delay = Duration::from_millis(1);
    ExponentialBackoffBuilder::new().with_initial_delay(delay).with_maximum_delay(delay).build().expect("a back-off")
}

pub(super) fn retrying(config: ClientBuilder) -> ClientBuilder {
    config.with_retry_policy(AlwaysRetry.with_attempt_limit(5)).with_backoff_policy(quick())
}

#[tokio::test]
async fn deletions_and_listings_make_one_attempt_too() {
    for fault in [Fault::Grpc(14, "unavailable"), Fault::Grpc(8, "slow down"), Fault::LoseAnswer, Fault::Status(503)] {
        for call in CONTROL_CALLS {
            let server = FakeGcs::start(Options::default()).await;
            server.fail_next([fault]);
            let control = server.control();
            let eager = move || {
                let policy = AlwaysRetry.with_attempt_limit(5);
                control().with_retry_policy(policy).with_backoff_policy(quick()).build()
            };
            let store = GcsStore::new(server.client().await, BUCKET).with_control(eager);
            call.on(&store).await.expect_err("a fault is an error");
            assert_eq!(server.requests().len(), 1, "{call:?}, {fault:?}");
        }
    }
}

#[tokio::test]
async fn the_clients_themselves_would_have_retried() {
    let server = ScriptedServer::start(std::iter::repeat_n(Answer::new(503).into(), 2)).await;
    let client = config(&server.url()).with_backoff_policy(quick()).build().await.expect("a client");
    client.read_object("projects/_/buckets/bucket", "key").send().await.expect_err("503, then 418");
    assert!(server.requests().len() > 1);

    let server = FakeGcs::start(Options::default()).await;
    server.fail_next([Fault::Grpc(14, "unavailable")]);
    let control = server.control()().with_backoff_policy(quick()).build().await.expect("a client");
    let request = control.list_objects().set_parent("projects/_/buckets/bucket").with_idempotency(true);
    request.send().await.expect("the second attempt");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn deletions_and_listings_that_are_not_answered_are_given_up_too() {
    for call in CONTROL_CALLS {
        let server = FakeGcs::start(Options::default()).await;
        server.fail_next([Fault::Hang]);
        assert_given_up(*call, GcsStore::on(&server.url()).await).await;
        // On a busy machine, the request may not even have arrived before the timeout.
        assert!(server.requests().len() <= 1, "{call:?}");
    }
}
