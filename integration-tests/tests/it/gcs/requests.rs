//! What goes over the wire, and what is read from it.

use bytes::Bytes;
use leaderelection::{ConditionalStore as _, MAX_BODY_BYTES, Precondition, StoreErrorKind, Version};
use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer, Step};

use super::{config, scripted, store};

fn object(generation: &str, body: impl Into<Vec<u8>>) -> Answer {
    let body = body.into();
    let length = body.len().to_string();
    let answer = Answer::new(200).header("x-goog-generation", generation);
    answer.header("x-goog-stored-content-length", length).body(body)
}

fn written(generation: &str) -> Answer {
    let body = format!(r#"{{"name":"key","bucket":"bucket","generation":"{generation}","metageneration":"1"}}"#);
    Answer::new(200).header("content-type", "application/json").body(body)
}

#[tokio::test]
async fn a_create_writes_only_where_there_is_nothing() {
    let (server, store) = scripted([written("1770000000000001")]).await;
    let version = store.put("a key", Bytes::from_static(b"{}"), &Precondition::Absent).await.expect("written");
    assert_eq!(version.as_str(), "1770000000000001");
    let request = server.requests().remove(0);
    assert_eq!(request.method, "POST");
    assert!(request.target.starts_with("/upload/storage/v1/b/bucket/o?"), "{}", request.target);
    for parameter in ["uploadType=multipart", "name=a+key", "ifGenerationMatch=0"] {
        assert!(request.target.contains(parameter), "{parameter}: {}", request.target);
    }
    let body = String::from_utf8_lossy(&request.body);
    assert!(body.contains(r#""cacheControl":"no-store""#), "{body}");
    assert!(body.contains(r#""contentType":"application/json""#), "{body}");
    assert!(body.contains("\r\n\r\n{}\r\n"), "{body}");
}

#[tokio::test]
async fn a_generation_goes_back_as_it_came() {
    let (server, store) = scripted([object("1770000000000001", "{}"), written("1770000000000002")]).await;
    let read = store.get("a key/ä").await.expect("read").expect("an object");
    assert_eq!((read.version.as_str(), &read.body[..]), ("1770000000000001", &b"{}"[..]));
    let precondition = Precondition::Matches(read.version);
    store.put("a key/ä", Bytes::from_static(b"{}"), &precondition).await.expect("written");
    let requests = server.requests();
    assert_eq!(requests[0].target, "/storage/v1/b/bucket/o/a%20key%2F%C3%A4?alt=media");
    assert!(requests[1].target.contains("ifGenerationMatch=1770000000000001"), "{}", requests[1].target);
}

#[tokio::test]
async fn the_largest_body_is_one_request() {
    let script = [written("1").into(), object("1", vec![b' '; MAX_BODY_BYTES]).into()];
    let server = ScriptedServer::start(script).await;
    let store = store(config(&server.url()).with_resumable_upload_threshold(0_usize)).await;
    store.put("key", vec![b' '; MAX_BODY_BYTES].into(), &Precondition::Absent).await.expect("written");
    assert_eq!(store.get("key").await.expect("read").expect("an object").body.len(), MAX_BODY_BYTES);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn an_object_over_the_limit_is_not_downloaded() {
    // Of the body nothing is ever sent: whoever waits for it is given up as ambiguous.
    let answer = object("1", vec![0xff; MAX_BODY_BYTES + 1]);
    let (_server, store) = scripted([Step::Stalled { answer, missing: MAX_BODY_BYTES + 1 }]).await;
    let error = store.get("key").await.expect_err("too large");
    assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{error}");
    assert!(error.to_string().contains("larger than 65536 bytes"), "{error}");
}

#[tokio::test]
async fn an_object_that_does_not_say_its_size_is_read_up_to_the_limit() {
    for (length, fits) in [(MAX_BODY_BYTES, true), (MAX_BODY_BYTES + 1, false)] {
        let answer = Answer::new(200).header("x-goog-generation", "1").body(vec![b' '; length]);
        let (_server, store) = scripted([answer]).await;
        match store.get("key").await {
            Ok(object) => assert!(fits && object.expect("an object").body.len() == length, "{length}"),
            Err(error) => assert!(!fits && error.kind() == StoreErrorKind::Unreadable, "{length}: {error}"),
        }
    }
}

#[tokio::test]
async fn a_name_that_would_hit_something_else_is_refused() {
    let (server, store) = scripted([Answer::new(200)]).await;
    for key in ["", ".", "..", "a\nb", "a\rb"] {
        let error = store.put(key, Bytes::from_static(b"{}"), &Precondition::Absent).await.expect_err("no name");
        assert_eq!(error.kind(), StoreErrorKind::Fatal, "{key:?}: {error}");
        assert_eq!(store.get(key).await.expect_err("no name").kind(), StoreErrorKind::Fatal, "{key:?}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_version_of_another_store_does_no_harm() {
    // A precondition of 0 would create.
    let (server, store) = scripted([Answer::new(200)]).await;
    for version in ["0", "-1", "\"etag\"", "", "99999999999999999999"] {
        let precondition = Precondition::Matches(Version::new(version));
        let error = store.put("key", Bytes::from_static(b"{}"), &precondition).await.expect_err("no generation");
        assert_eq!(error.kind(), StoreErrorKind::Fatal, "{version:?}: {error}");
        let error = store.delete("key", &Version::new(version)).await.expect_err("no generation");
        assert_eq!(error.kind(), StoreErrorKind::Fatal, "{version:?}: {error}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn nothing_prints_the_client() {
    let store = store(config("http://127.0.0.1:9")).await;
    assert_eq!(format!("{store:?}"), r#"GcsStore { bucket: "bucket", request_timeout: 10s, .. }"#);
}
