//! Requests that get no answer: did they leave?

use std::error::Error as _;
use std::sync::Arc;

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::error::{Error, ErrorKind};
use azure_core::http::ClientOptions;
use leaderelection::StoreErrorKind::{Ambiguous, Rejected};
use leaderelection_backends::azure::{AzureCredential, AzureStore};
use leaderelection_integration_tests::servers::scripted::{Answer, Step};
use tokio::net::TcpSocket;

use super::{CALLS, Create, Get, List, Update, scripted, store};

#[tokio::test]
async fn a_connection_that_breaks_is_ambiguous() {
    for fault in [Step::Close, Step::Reset] {
        for call in CALLS {
            let (_server, store) = scripted([fault.clone()]).await;
            let error = call.on(&store).await.expect_err("no answer");
            assert_eq!(error.kind(), Ambiguous, "{call:?}, {fault:?}: {error:?}");
            assert!(error.source().is_some(), "{call:?}, {fault:?}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_ambiguous() {
    let answer = Answer::new(200).header("etag", "\"etag\"").body(vec![b' '; 1000]);
    for answer in [answer.clone(), answer.chunked()] {
        for call in [Get, List] {
            let (_server, store) = scripted([Step::Truncated { answer: answer.clone(), missing: 500 }]).await;
            let error = call.on(&store).await.expect_err("half an answer");
            assert_eq!(error.kind(), Ambiguous, "{call:?}: {error:?}");
        }
    }
    let answer = Answer::new(201).header("etag", "\"etag\"").body(vec![b' '; 1000]);
    for call in [Create, Update] {
        let (_server, store) = scripted([Step::Truncated { answer: answer.clone(), missing: 500 }]).await;
        let error = call.on(&store).await.expect_err("half an answer");
        assert_eq!(error.kind(), Ambiguous, "{call:?}: {error:?}");
    }
}

#[tokio::test]
async fn a_refused_connection_is_a_rejection() {
    // Bound but not listening: nobody else can take the port meanwhile.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let store = store(&format!("http://{}", socket.local_addr().expect("an address")), ClientOptions::default());
    for call in CALLS {
        let error = call.on(&store).await.expect_err("refused");
        assert_eq!(error.kind(), Rejected, "{call:?}: {error:?}");
        assert!(error.to_string().contains("cannot connect; check the account's name"), "{call:?}: {error}");
    }
}

#[tokio::test]
async fn an_unknown_host_is_a_rejection() {
    // A label this long is no host name anywhere, so that no name server needs to be asked.
    let store = store(&format!("http://{}.invalid", "x".repeat(64)), ClientOptions::default());
    for call in CALLS {
        let error = call.on(&store).await.expect_err("unknown");
        assert_eq!(error.kind(), Rejected, "{call:?}: {error:?}");
    }
}

#[tokio::test]
async fn a_token_that_cannot_be_had_is_a_rejection() {
    let credential = AzureCredential::EntraId(Arc::new(Failing));
    let store = AzureStore::new("https://account.blob.invalid/container", credential).expect("a store");
    for call in CALLS {
        let error = call.on(&store).await.expect_err("no token");
        assert_eq!(error.kind(), Rejected, "{call:?}: {error:?}");
        assert!(error.to_string().contains("cannot get a token; the request was not sent"), "{call:?}: {error}");
        assert_eq!(error.source().expect("a source").to_string(), "nobody is logged in");
    }
}

#[derive(Debug)]
struct Failing;

#[async_trait]
impl TokenCredential for Failing {
    async fn get_token(&self, _: &[&str], _: Option<TokenRequestOptions<'_>>) -> azure_core::Result<AccessToken> {
        Err(Error::with_message(ErrorKind::Credential, "nobody is logged in"))
    }
}
