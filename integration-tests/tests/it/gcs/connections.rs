//! Requests that get no answer: did they leave?

use leaderelection::StoreErrorKind::{Ambiguous, Fatal, Rejected};
use leaderelection_integration_tests::servers::scripted::{Answer, Step};
use tokio::net::TcpSocket;

use google_cloud_storage::client::StorageControl;

use super::{CALLS, CONTROL_CALLS, Create, OBJECT_CALLS, Update, config, scripted, store};

#[tokio::test]
async fn a_connection_that_breaks_is_ambiguous() {
    for fault in [Step::Close, Step::Reset] {
        for call in OBJECT_CALLS {
            let (_server, store) = scripted([fault.clone()]).await;
            let error = call.on(&store).await.expect_err("no answer");
            assert_eq!(error.kind(), Ambiguous, "{call:?}, {fault:?}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_ambiguous() {
    let answer = Answer::new(200).header("x-goog-generation", "7").body(vec![b' '; 1000]);
    for answer in [answer.clone(), answer.chunked()] {
        for call in OBJECT_CALLS {
            let (_server, store) = scripted([Step::Truncated { answer: answer.clone(), missing: 500 }]).await;
            let error = call.on(&store).await.expect_err("half an answer");
            assert_eq!(error.kind(), Ambiguous, "{call:?}: {error:?}");
        }
    }
    // A refusal of which half is missing is still not known to be one.
    for call in [Create, Update] {
        let (_server, store) = scripted([Step::Truncated { answer: Answer::new(412).body("oh no"), missing: 2 }]).await;
        assert_eq!(call.on(&store).await.expect_err("half an answer").kind(), Ambiguous, "{call:?}");
    }
}

#[tokio::test]
async fn a_refused_connection_is_a_rejection() {
    // Bound but not listening: nobody else can take the port meanwhile.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let endpoint = format!("http://{}", socket.local_addr().expect("an address"));
    let store = store(config(&endpoint)).await.with_control(move || {
        let credentials = google_cloud_auth::credentials::anonymous::Builder::new().build();
        StorageControl::builder().with_endpoint(&endpoint).with_credentials(credentials).build()
    });
    for call in CALLS {
        let error = call.on(&store).await.expect_err("refused");
        assert_eq!(error.kind(), Rejected, "{call:?}: {error:?}");
        assert!(error.to_string().contains("cannot connect; check the client's endpoint"), "{call:?}: {error}");
    }
}

#[tokio::test]
async fn an_unknown_host_is_a_rejection() {
    // A label this long is no host name anywhere, so that no name server needs to be asked.
    let store = store(config(&format!("http://{}.invalid", "x".repeat(64)))).await;
    for call in OBJECT_CALLS {
        let error = call.on(&store).await.expect_err("unknown");
        assert_eq!(error.kind(), Rejected, "{call:?}: {error:?}");
    }
}

#[tokio::test]
async fn a_control_client_that_cannot_be_made_is_fatal_and_tried_again() {
    let (server, store) = scripted([Answer::new(200)]).await;
    let store = store.with_control(|| async { Err::<StorageControl, _>(std::io::Error::other("no such file")) });
    for call in CONTROL_CALLS.into_iter().chain(CONTROL_CALLS) {
        let error = call.on(&store).await.expect_err("no client");
        assert_eq!(error.kind(), Fatal, "{call:?}: {error:?}");
        assert!(error.to_string().contains("check the credentials"), "{call:?}: {error}");
    }
    assert!(server.requests().is_empty());
}
