//! The requests on the wire.

use bytes::Bytes;
use leaderelection::StoreErrorKind;
use leaderelection::implement::{ConditionalStore as _, ConditionalStoreExt, MAX_BODY_BYTES, Precondition};
use leaderelection_backends::azure::{AzureCredential, AzureStore};
use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer, Step};

use super::blob;
use crate::calls::CALLS;
use crate::every_store::CloudStore as _;

#[tokio::test]
async fn a_create_writes_only_where_there_is_nothing() {
    let (server, store) = AzureStore::scripted([AzureStore::written()]).await;
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
async fn a_blob_is_discarded_in_one_request_without_a_condition() {
    let missing = super::error(404, "BlobNotFound");
    let (server, store) = AzureStore::scripted([Answer::new(202), missing]).await;
    store.discard("key").await.expect("deleted");
    store.discard("key").await.expect("it is not there");
    assert_eq!(server.requests().len(), 2);
    for request in server.requests() {
        assert_eq!((request.method.as_str(), request.header("if-match")), ("DELETE", None));
    }
}

#[tokio::test]
async fn an_etag_goes_back_as_it_came() {
    for etag in ["\"quoted\"", "bare"] {
        let (server, store) =
            AzureStore::scripted([blob(etag, "{}", 2), AzureStore::written(), Answer::new(202)]).await;
        let read = store.get("key").await.expect("read").expect("an object");
        assert_eq!((read.version.as_str(), &read.body[..]), (etag, &b"{}"[..]));
        let precondition = Precondition::Matches(read.version.clone());
        store.put("key", Bytes::from_static(b"{}"), &precondition).await.expect("written");
        store.delete("key", Some(&read.version)).await.expect("deleted");
        for request in &server.requests()[1..] {
            assert_eq!(request.header("if-match"), Some(etag), "{}", request.method);
            assert_eq!(request.header("if-none-match"), None, "{}", request.method);
        }
    }
}

#[tokio::test]
async fn a_read_is_one_request_whatever_range_the_answer_names() {
    for range in ["bytes 0-0/65537", "bytes 0-18446744073709551615/2", "bytes 0-1/*"] {
        let answer = Answer::new(206).header("etag", "7").header("content-range", range).body("{}");
        let (server, store) = AzureStore::scripted([answer]).await;
        let read = store.get("key").await.expect("read").expect("an object");
        assert_eq!((&read.body[..], server.requests().len()), (&b"{}"[..], 1), "{range}");
    }
}

#[tokio::test]
async fn a_blob_over_the_limit_is_asked_for_once_and_in_part() {
    // The server never sends the rest of the body: a store that waits for it gives up with an ambiguous error.
    let answer = blob("\"photo\"", vec![0xff; MAX_BODY_BYTES + 1], 10_000_000);
    let (server, store) = AzureStore::scripted([Step::Stalled { answer, missing: MAX_BODY_BYTES + 1 }]).await;
    let error = store.get("key").await.expect_err("too large");
    assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{error}");
    assert!(error.to_string().contains("larger than 65536 bytes"), "{error}");
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    // One byte more than the limit shows whether the blob is too large.
    assert_eq!(requests[0].header("x-ms-range").or(requests[0].header("range")), Some("bytes=0-65536"));
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
