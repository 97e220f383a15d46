//! Tokens of Entra ID: sent with every request, refused without TLS, and missing if the token server fails.

use std::error::Error as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::error::{Error, ErrorKind};
use azure_core::http::headers::Headers;
use azure_core::http::{AsyncRawResponse, ClientOptions, HttpClient, Request, StatusCode, Transport};
use azure_core::time::{Duration, OffsetDateTime};
use bytes::Bytes;
use leaderelection::StoreErrorKind;
use leaderelection_backends::azure::{AzureCredential, AzureStore};
use tokio::sync::Semaphore;

use crate::calls::Call::Get;
use crate::calls::{CALLS, assert_error};
use crate::every_store::CloudStore as _;

#[tokio::test]
async fn a_token_is_sent_with_every_request() {
    for call in CALLS {
        let transport = Arc::new(Recording::default());
        let options = ClientOptions { transport: Some(Transport::new(transport.clone())), ..Default::default() };
        let credential = AzureCredential::EntraId(Arc::new(Token));
        let store = AzureStore::with_options("https://account.blob.core.windows.net/container", credential, options);
        call.on(&store.expect("a store")).await.expect_err("answered 500");
        let requests = transport.authorizations.lock().expect("not poisoned");
        assert_eq!(*requests, ["Bearer entra-token"], "{call:?}");
    }
}

#[test]
fn a_token_is_never_sent_without_tls() {
    let credential = AzureCredential::EntraId(Arc::new(Token));
    let error = AzureStore::new("http://account.blob.core.windows.net/container", credential).expect_err("no TLS");
    assert!(error.to_string().contains("use https with Entra ID"), "{error}");
}

#[tokio::test]
async fn a_token_that_cannot_be_had_is_a_rejection() {
    let credential = AzureCredential::EntraId(Arc::new(Failing));
    let store = AzureStore::new("https://account.blob.invalid/container", credential).expect("a store");
    for call in CALLS {
        let error = call.on(&store).await.expect_err("no token");
        let advice = "cannot get a token; the request was not sent";
        assert_error(&error, &store, StoreErrorKind::Rejected, advice, format!("{call:?}"));
        assert_eq!(error.source().expect("a source").to_string(), "nobody is logged in");
    }
}

#[tokio::test]
async fn a_token_that_takes_longer_than_a_request_is_got_once() {
    let (slow, transport) = (Arc::new(Slow::default()), Arc::new(Recording::default()));
    let options = ClientOptions { transport: Some(Transport::new(transport.clone())), ..Default::default() };
    let credential = AzureCredential::EntraId(slow.clone());
    let store = AzureStore::with_options("https://account.blob.core.windows.net/container", credential, options);
    let store = store.expect("a store");
    for _ in 0..3 {
        let error = Get.on(&store.clone().in_a_hurry()).await.expect_err("no token yet");
        assert_eq!(error.kind(), StoreErrorKind::Ambiguous, "{error}");
        assert!(error.to_string().contains("the credentials were not loaded within 300ms"), "{error}");
    }
    slow.may_answer.add_permits(1);
    Get.on(&store).await.expect_err("answered 500");
    assert_eq!(*transport.authorizations.lock().expect("not poisoned"), ["Bearer entra-token"]);
    assert_eq!(slow.asked.load(Ordering::SeqCst), 1);
}

/// A token that comes when the test allows it.
#[derive(Debug)]
struct Slow {
    asked: AtomicUsize,
    may_answer: Semaphore,
}

impl Default for Slow {
    fn default() -> Self {
        Self { asked: AtomicUsize::new(0), may_answer: Semaphore::new(0) }
    }
}

#[async_trait]
impl TokenCredential for Slow {
    async fn get_token(&self, scopes: &[&str], _: Option<TokenRequestOptions<'_>>) -> azure_core::Result<AccessToken> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let _allowed = self.may_answer.acquire().await;
        Token.get_token(scopes, None).await
    }
}

/// A transport that answers 500 and remembers the credentials of the requests.
#[derive(Debug, Default)]
struct Recording {
    authorizations: Mutex<Vec<String>>,
}

#[async_trait]
impl HttpClient for Recording {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let authorization = request.headers().get_str(&"authorization".into()).unwrap_or("none").to_owned();
        self.authorizations.lock().expect("not poisoned").push(authorization);
        Ok(AsyncRawResponse::from_bytes(StatusCode::InternalServerError, Headers::new(), Bytes::new()))
    }
}

#[derive(Debug)]
struct Token;

#[async_trait]
impl TokenCredential for Token {
    async fn get_token(&self, _: &[&str], _: Option<TokenRequestOptions<'_>>) -> azure_core::Result<AccessToken> {
        Ok(AccessToken::new("entra-token", OffsetDateTime::now_utc() + Duration::hours(1)))
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
