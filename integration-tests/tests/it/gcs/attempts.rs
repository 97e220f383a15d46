//! One request on the wire for each call, and a bound on each, whatever the user's client does.

use std::time::Duration;

use google_cloud_gax::exponential_backoff::{ExponentialBackoff, ExponentialBackoffBuilder};
use google_cloud_gax::options::RequestOptionsBuilder as _;
use google_cloud_gax::retry_policy::{AlwaysRetry, RetryPolicyExt as _};
use leaderelection::StoreErrorKind;
use leaderelection_backends::gcs::GcsStore;
use leaderelection_integration_tests::servers::fake_gcs::{BUCKET, FakeGcs, Fault, Options};
use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer, Step};

use super::{CALLS, CONTROL_CALLS, Get, OBJECT_CALLS, config, on_fake, scripted, store};

const SHORT: Duration = Duration::from_millis(100);

fn quick() -> ExponentialBackoff {
    let delay = Duration::from_millis(1);
    ExponentialBackoffBuilder::new().with_initial_delay(delay).with_maximum_delay(delay).build().expect("a back-off")
}

fn faults() -> Vec<Step> {
    vec![
        Answer::new(500).into(),
        Answer::new(502).into(),
        Answer::new(503).into(),
        Answer::new(503).header("retry-after", "0").into(),
        Answer::new(429).into(),
        Answer::new(408).into(),
        Answer::new(401).into(),
        Answer::new(308).into(),
        Step::Truncated { answer: Answer::new(500).body("oh no"), missing: 4 },
        Step::Close,
        Step::Reset,
    ]
}

#[tokio::test]
async fn a_store_makes_one_attempt_whatever_its_client_was_told() {
    for eager in [false, true] {
        for fault in faults() {
            for call in OBJECT_CALLS {
                let server = ScriptedServer::start([fault.clone()]).await;
                let mut config = config(&server.url());
                if eager {
                    config = config.with_retry_policy(AlwaysRetry.with_attempt_limit(5)).with_backoff_policy(quick());
                }
                call.on(&store(config).await).await.expect_err("a fault is an error");
                assert_eq!(server.requests().len(), 1, "{call:?}, {eager}, {fault:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_broken_body_is_not_read_on() {
    let answer = Answer::new(200)
        .header("x-goog-generation", "7")
        .header("x-goog-stored-content-length", "1000")
        .body(vec![b' '; 1000]);
    let (server, store) = scripted([Step::Truncated { answer, missing: 500 }]).await;
    assert_eq!(Get.on(&store).await.expect_err("half a body").kind(), StoreErrorKind::Ambiguous);
    assert_eq!(server.requests().len(), 1);
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
async fn a_store_that_does_not_answer_is_given_up() {
    for call in CALLS {
        let server = FakeGcs::start(Options::default()).await;
        server.fail_next([Fault::Hang]);
        let error = call.on(&on_fake(&server).await.with_request_timeout(SHORT)).await.expect_err("no answer");
        assert_eq!(error.kind(), StoreErrorKind::Ambiguous, "{call:?}");
        assert_eq!(error.to_string(), "gs://bucket/key: no answer within 100ms");
        // On a busy machine the request may not even have arrived when its time was up.
        assert!(server.requests().len() <= 1, "{call:?}");
    }
}

#[tokio::test]
async fn a_body_that_does_not_end_is_given_up() {
    let answer = Answer::new(200).header("x-goog-generation", "7").body(vec![b' '; 1000]);
    let (_server, store) = scripted([Step::Stalled { answer, missing: 500 }]).await;
    let error = Get.on(&store.with_request_timeout(SHORT)).await.expect_err("half an answer");
    assert_eq!(error.kind(), StoreErrorKind::Ambiguous);
    assert_eq!(error.to_string(), "gs://bucket/key: no answer within 100ms");
}
