//! The parts of an answer that are read, and the requests that are not sent.

use bytes::Bytes;
use leaderelection::StoreErrorKind;
use leaderelection::implement::{MAX_BODY_BYTES, Precondition};
use leaderelection_integration_tests::servers::scripted::{Answer, Step};

use super::CloudStore;

pub(super) async fn a_request_names_this_library<S: CloudStore>() {
    for call in S::CALLS {
        let (server, store) = S::scripted([Answer::new(500)]).await;
        call.on(&store).await.expect_err("refused");
        let requests = server.requests();
        let agent = requests[0].header("user-agent").unwrap_or_default();
        let named = concat!("leaderelection/", env!("CARGO_PKG_VERSION"));
        assert!(agent.split(' ').any(|word| word == named), "{call:?}: {agent}");
    }
}

pub(super) async fn an_object_over_the_limit_is_not_downloaded<S: CloudStore>() {
    // The server never sends the body: a store that waits for it gives up with an ambiguous error.
    let answer = S::object(vec![0xff; MAX_BODY_BYTES + 1]);
    let (server, store) = S::scripted([Step::Stalled { answer, missing: MAX_BODY_BYTES + 1 }]).await;
    let error = store.get("key").await.expect_err("too large");
    assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{error}");
    assert!(error.to_string().contains("larger than 65536 bytes"), "{error}");
    assert_eq!(server.requests().len(), 1);
}

pub(super) async fn an_object_is_read_up_to_the_limit<S: CloudStore>() {
    for (length, fits) in [(MAX_BODY_BYTES, true), (MAX_BODY_BYTES + 1, false)] {
        let body = vec![b' '; length];
        for answer in [S::object(body.clone()), S::object_of_unknown_length(body)] {
            let (_server, store) = S::scripted([answer]).await;
            match store.get("key").await {
                Ok(object) => assert!(fits && object.expect("an object").body.len() == length, "{length}"),
                Err(error) => assert!(!fits && error.kind() == StoreErrorKind::Unreadable, "{length}: {error}"),
            }
        }
    }
}

pub(super) async fn a_key_that_would_hit_something_else_is_refused<S: CloudStore>() {
    let (server, store) = S::scripted([Answer::new(200)]).await;
    for key in S::IMPOSSIBLE_KEYS {
        let error = store.put(key, Bytes::from_static(b"{}"), &Precondition::Absent).await.expect_err("no name");
        assert_eq!(error.kind(), StoreErrorKind::Fatal, "{key:?}: {error}");
        assert_eq!(store.get(key).await.expect_err("no name").kind(), StoreErrorKind::Fatal, "{key:?}");
    }
    assert!(server.requests().is_empty());
}
