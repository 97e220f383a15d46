//! Requests that are not sent, because the connection, the region, or the credentials are missing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::future;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{BehaviorVersion, Config, Credentials, ProvideCredentials};
use leaderelection::StoreErrorKind::{Ambiguous, Fatal, Rejected};
use leaderelection_backends::s3::S3Store;
use leaderelection_integration_tests::servers::scripted::{ScriptedServer, Step};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;

use super::{config, store};
use crate::calls::Call::Get;
use crate::calls::{CALLS, assert_fails};
use crate::every_store::CloudStore as _;

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_connection_that_cannot_be_made_in_time_is_a_rejection() {
    // Linux drops further connections after a backlog of n has accepted n + 1 connections.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let listener = socket.listen(1).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let _backlog = [
        TcpStream::connect(address).await.expect("the first of the backlog"),
        TcpStream::connect(address).await.expect("the last of the backlog"),
    ];
    let timeouts = TimeoutConfig::builder().connect_timeout(Duration::from_millis(100)).build();
    let store = store(config(&format!("http://{address}")).timeout_config(timeouts));
    assert_fails(&store, CALLS, Rejected, "cannot connect").await;
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
    assert_fails(&store(config), CALLS, Fatal, "no region; ").await;
}

#[tokio::test]
async fn credentials_that_are_not_to_be_found_are_fatal() {
    let provider = Failing(|| CredentialsError::not_loaded("searched everywhere"));
    let store = store(config("http://127.0.0.1:9").credentials_provider(provider));
    assert_fails(&store, CALLS, Fatal, "no credentials").await;
}

#[tokio::test]
async fn a_credentials_service_that_fails_is_a_rejection() {
    let provider = Failing(|| CredentialsError::provider_error("the service is down"));
    let store = store(config("http://127.0.0.1:9").credentials_provider(provider));
    assert_fails(&store, CALLS, Rejected, "cannot load credentials").await;
}

#[tokio::test]
async fn credentials_that_take_longer_than_a_request_are_loaded_once() {
    let slow = Slow::default();
    let server = ScriptedServer::start([S3Store::object(b"{}".to_vec()).into()]).await;
    let store = store(config(&server.url()).credentials_provider(slow.clone()));
    for _ in 0..3 {
        let error = Get.on(&store.clone().in_a_hurry()).await.expect_err("no credentials yet");
        assert_eq!(error.kind(), Ambiguous, "{error}");
        assert!(error.to_string().contains("the credentials were not loaded within 300ms"), "{error}");
    }
    assert!(server.requests().is_empty());
    slow.may_answer.add_permits(1);
    Get.on(&store).await.expect("read");
    assert_eq!(slow.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_client_that_is_made_anew_loads_no_credentials() {
    let slow = Slow::default();
    slow.may_answer.add_permits(1);
    let answers = std::iter::repeat_n(S3Store::object(b"{}".to_vec()).into(), 10);
    let server = ScriptedServer::start(std::iter::once(Step::Hang).chain(answers)).await;
    let store = store(config(&server.url()).credentials_provider(slow.clone()));
    let in_a_hurry = store.clone().in_a_hurry();
    // On a busy machine, a request may not even have arrived before its timeout.
    while server.requests().is_empty() {
        drop(Get.on(&in_a_hurry).await);
    }
    Get.on(&store).await.expect("read");
    assert_eq!(slow.asked.load(Ordering::SeqCst), 1);
}

/// Credentials that come when the test allows it.
#[derive(Clone, Debug)]
struct Slow {
    asked: Arc<AtomicUsize>,
    may_answer: Arc<Semaphore>,
}

impl Default for Slow {
    fn default() -> Self {
        Self { asked: Arc::default(), may_answer: Arc::new(Semaphore::new(0)) }
    }
}

impl ProvideCredentials for Slow {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(async {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let _allowed = self.may_answer.acquire().await;
            Ok(Credentials::new("test-key-id", "test-secret", None, None, "test"))
        })
    }
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
