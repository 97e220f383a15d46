//! Requests that are not sent, because the connection, the region, or the credentials are missing.

use std::time::Duration;

use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::future;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{BehaviorVersion, Config, Credentials, ProvideCredentials};
use leaderelection::StoreErrorKind::{Fatal, Rejected};
use tokio::net::{TcpSocket, TcpStream};

use super::{config, store};
use crate::calls::{CALLS, assert_fails};

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
    assert_fails(&store(config), CALLS, Fatal, "check the client's region and endpoint").await;
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
