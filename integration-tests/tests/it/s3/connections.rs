//! Requests that get no answer: did they leave?

use std::time::Duration;

use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::future;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{BehaviorVersion, Builder, Config, Credentials, ProvideCredentials};
use leaderelection::StoreErrorKind::{self, Ambiguous, Fatal, Rejected};
use leaderelection_integration_tests::servers::scripted::{Answer, Step};
use tokio::net::{TcpSocket, TcpStream};

use super::{CALLS, Create, Get, Update, config, scripted, store};

async fn assert_verdict(config: Builder, kind: StoreErrorKind, advice: &str) {
    let store = store(config);
    for call in CALLS {
        let error = call.on(&store).await.expect_err("an error");
        let text = error.to_string();
        assert_eq!(error.kind(), kind, "{call:?}: {error:?}");
        assert!(text.starts_with("s3://bucket/key: ") && text.contains(advice), "{call:?}: {text}");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_is_ambiguous() {
    for fault in [Step::Close, Step::Reset] {
        for call in CALLS {
            let (_server, store) = scripted([fault.clone()]).await;
            let error = call.on(&store).await.expect_err("no answer");
            assert_eq!(error.kind(), Ambiguous, "{call:?}, {fault:?}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_ambiguous() {
    let answer = Answer::new(200).header("etag", "\"etag\"").body(vec![b' '; 1000]);
    for answer in [answer.clone(), answer.chunked()] {
        for call in [Get, Create, Update] {
            let (_server, store) = scripted([Step::Truncated { answer: answer.clone(), missing: 500 }]).await;
            let error = call.on(&store).await.expect_err("half an answer");
            assert_eq!(error.kind(), Ambiguous, "{call:?}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_refused_connection_is_a_rejection() {
    // Bound but not listening: nobody else can take the port meanwhile.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let endpoint = format!("http://{}", socket.local_addr().expect("an address"));
    assert_verdict(config(&endpoint), Rejected, "cannot connect; check the client's endpoint").await;
}

#[tokio::test]
async fn an_unknown_host_is_a_rejection() {
    // A label this long is no host name anywhere, so that no name server needs to be asked.
    let endpoint = format!("http://{}.invalid", "x".repeat(64));
    assert_verdict(config(&endpoint), Rejected, "cannot connect").await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_connection_that_cannot_be_made_in_time_is_a_rejection() {
    // Linux drops what comes after a backlog of n has taken n + 1 connections.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let listener = socket.listen(1).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let _backlog = [
        TcpStream::connect(address).await.expect("the first of the backlog"),
        TcpStream::connect(address).await.expect("the last of the backlog"),
    ];
    let timeouts = TimeoutConfig::builder().connect_timeout(Duration::from_millis(100)).build();
    assert_verdict(config(&format!("http://{address}")).timeout_config(timeouts), Rejected, "cannot connect").await;
}

#[tokio::test]
async fn a_missing_region_is_fatal() {
    let config = Config::builder().behavior_version(BehaviorVersion::latest()).credentials_provider(Credentials::new(
        "test-key-id",
        "test-secret",
        None,
        None,
        "test",
    ));
    assert_verdict(config, Fatal, "check the client's region and endpoint").await;
}

#[tokio::test]
async fn credentials_that_are_not_to_be_found_are_fatal() {
    let provider = Failing(|| CredentialsError::not_loaded("searched everywhere"));
    assert_verdict(config("http://127.0.0.1:9").credentials_provider(provider), Fatal, "no credentials").await;
}

#[tokio::test]
async fn a_credentials_service_that_fails_is_a_rejection() {
    let provider = Failing(|| CredentialsError::provider_error("the service is down"));
    let config = config("http://127.0.0.1:9").credentials_provider(provider);
    assert_verdict(config, Rejected, "cannot load credentials").await;
}

#[derive(Debug)]
struct Failing(fn() -> CredentialsError);

impl ProvideCredentials for Failing {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::ready(Err(self.0()))
    }
}
