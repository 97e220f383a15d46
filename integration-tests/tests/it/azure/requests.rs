//! What goes over the wire, and what is read from it.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::http::headers::Headers;
use azure_core::http::{AsyncRawResponse, ClientOptions, HttpClient, Request, StatusCode, Transport};
use azure_core::time::{Duration, OffsetDateTime};
use bytes::Bytes;
use leaderelection::{ConditionalStore as _, MAX_BODY_BYTES, Precondition, StoreErrorKind};
use leaderelection_backends::azure::{AzureCredential, AzureStore};
use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer, Step};

use super::{CALLS, scripted};

/// A blob, read by a request for a range.
fn blob(etag: &str, body: impl Into<Vec<u8>>, total: usize) -> Answer {
    let body = body.into();
    let range = format!("bytes 0-{}/{total}", body.len() - 1);
    Answer::new(206).header("etag", etag).header("content-range", range).body(body)
}

fn written(etag: &str) -> Answer {
    Answer::new(201).header("etag", etag)
}

#[tokio::test]
async fn a_create_writes_only_where_there_is_nothing() {
    let (server, store) = scripted([written("\"new\"")]).await;
    let version = store.put("a key", Bytes::from_static(b"{}"), &Precondition::Absent).await.expect("written");
    assert_eq!(version.as_str(), "\"new\"");
    let request = server.requests().remove(0);
    assert_eq!((request.method.as_str(), request.body.as_slice()), ("PUT", &b"{}"[..]));
    assert_eq!(request.target, "/container/a%20key");
    assert_eq!(request.header("if-none-match"), Some("*"));
    assert_eq!(request.header("if-match"), None);
    assert_eq!(request.header("x-ms-blob-type"), Some("BlockBlob"));
    assert_eq!(request.header("x-ms-blob-content-type"), Some("application/json"));
    assert_eq!(request.header("x-ms-blob-cache-control"), Some("no-store"));
    let authorization = request.header("authorization").expect("a signature");
    assert!(authorization.starts_with("SharedKey account:"), "{authorization}");
}

#[tokio::test]
async fn an_etag_goes_back_as_it_came() {
    for etag in ["\"quoted\"", "bare"] {
        let (server, store) = scripted([blob(etag, "{}", 2), written("\"new\""), Answer::new(202)]).await;
        let read = store.get("key").await.expect("read").expect("an object");
        assert_eq!((read.version.as_str(), &read.body[..]), (etag, &b"{}"[..]));
        let precondition = Precondition::Matches(read.version.clone());
        store.put("key", Bytes::from_static(b"{}"), &precondition).await.expect("written");
        store.delete("key", &read.version).await.expect("deleted");
        for request in &server.requests()[1..] {
            assert_eq!(request.header("if-match"), Some(etag), "{}", request.method);
            assert_eq!(request.header("if-none-match"), None, "{}", request.method);
        }
    }
}

#[tokio::test]
async fn a_blob_over_the_limit_is_not_downloaded() {
    // Of the body nothing is ever sent: whoever waits for it is given up as ambiguous.
    let answer = blob("\"photo\"", vec![0xff; MAX_BODY_BYTES + 1], 10_000_000);
    let (server, store) = scripted([Step::Stalled { answer, missing: MAX_BODY_BYTES + 1 }]).await;
    let error = store.get("key").await.expect_err("too large");
    assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{error}");
    assert!(error.to_string().contains("larger than 65536 bytes"), "{error}");
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    // One byte more than may be, to know whether there is more.
    assert_eq!(requests[0].header("x-ms-range").or(requests[0].header("range")), Some("bytes=0-65536"));
}

#[tokio::test]
async fn a_blob_of_unknown_length_is_read_up_to_the_limit() {
    for (length, fits) in [(MAX_BODY_BYTES, true), (MAX_BODY_BYTES + 1, false)] {
        let (_server, store) = scripted([blob("\"etag\"", vec![b' '; length], length).chunked()]).await;
        match store.get("key").await {
            Ok(object) => assert!(fits && object.expect("an object").body.len() == length, "{length}"),
            Err(error) => assert!(!fits && error.kind() == StoreErrorKind::Unreadable, "{length}: {error}"),
        }
    }
}

#[tokio::test]
async fn a_name_that_would_hit_another_blob_is_refused() {
    let (server, store) = scripted([Answer::new(200)]).await;
    for key in ["", ".", "..", "a\tb", "a\nb", "a\rb"] {
        let error = store.put(key, Bytes::from_static(b"{}"), &Precondition::Absent).await.expect_err("no name");
        assert_eq!(error.kind(), StoreErrorKind::Fatal, "{key:?}: {error}");
        assert_eq!(store.get(key).await.expect_err("no name").kind(), StoreErrorKind::Fatal, "{key:?}");
    }
    assert!(server.requests().is_empty());
}

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

#[tokio::test]
async fn a_sas_is_sent_with_every_request() {
    for call in CALLS {
        let server = ScriptedServer::start([Answer::new(500).into()]).await;
        let url = format!("{}/container?sv=1&sig=a%2Bb%3D", server.url());
        let store = AzureStore::new(&url, AzureCredential::InUrl).expect("a store");
        call.on(&store).await.expect_err("answered 500");
        let request = server.requests().remove(0);
        for parameter in ["sv=1", "sig=a%2Bb%3D"] {
            assert!(request.target.contains(parameter), "{call:?}: {}", request.target);
        }
        assert_eq!(request.header("authorization"), None);
    }
}

#[test]
fn a_token_is_never_sent_without_tls() {
    let credential = AzureCredential::EntraId(Arc::new(Token));
    let error = AzureStore::new("http://account.blob.core.windows.net/container", credential).expect_err("no TLS");
    assert!(error.to_string().contains("use https with Entra ID"), "{error}");
}

/// Answers 500 and remembers who asked.
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
