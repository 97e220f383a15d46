//! Requests without an answer, or with a part of one: the error depends on whether the request was sent.

use std::error::Error as _;

use leaderelection::StoreErrorKind::{Ambiguous, Rejected};
use leaderelection_integration_tests::servers::scripted::Step;
use tokio::net::TcpSocket;
use tokio::runtime::Builder;

use super::CloudStore;
use crate::calls::Call::{Create, Get, Update};
use crate::calls::{CALLS, assert_fails};

pub(super) async fn a_connection_that_breaks_is_ambiguous<S: CloudStore>() {
    for fault in [Step::Close, Step::Reset] {
        for call in S::CALLS {
            let (_server, store) = S::scripted([fault.clone()]).await;
            let error = call.on(&store).await.expect_err("no answer");
            assert_eq!(error.kind(), Ambiguous, "{call:?}, {fault:?}: {error:?}");
            assert!(error.source().is_some(), "{call:?}, {fault:?}: {error:?}");
        }
    }
}

pub(super) async fn a_body_that_breaks_off_is_ambiguous<S: CloudStore>() {
    let body = || vec![b' '; 1000];
    let found = [S::object(body()), S::object_of_unknown_length(body())];
    let written = [S::written().body(body())];
    for (calls, answers) in [(&[Get][..], &found[..]), (&[Create, Update], &written)] {
        for answer in answers.iter().cloned().flat_map(|answer| [answer.clone(), answer.chunked()]) {
            S::assert_verdict(calls, Step::Truncated { answer, missing: 500 }, Ambiguous, "").await;
        }
    }
}

pub(super) async fn a_refused_connection_is_a_rejection<S: CloudStore>() {
    // The socket is bound but does not listen, so no other process can take the port.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let endpoint = format!("http://{}", socket.local_addr().expect("an address"));
    assert_fails(&S::on(&endpoint).await, CALLS, Rejected, S::UNREACHABLE).await;
}

pub(super) async fn an_unknown_host_is_a_rejection<S: CloudStore>() {
    // No host name may contain so long a label, so no name server is asked.
    let endpoint = format!("http://{}.invalid", "x".repeat(64));
    assert_fails(&S::on(&endpoint).await, CALLS, Rejected, S::UNKNOWN_HOST).await;
}

/// Clients look names up on threads of the runtime, which panics if the system gives it none.
pub(super) async fn a_host_that_no_thread_looks_up_fails_one_request<S: CloudStore>() {
    let looked_up = std::thread::spawn(|| {
        // No thread has so large a stack.
        let runtime = Builder::new_current_thread().enable_all().thread_stack_size(1 << 48).build();
        runtime.expect("a runtime").block_on(async {
            let store = S::on("http://localhost:1").await;
            for call in S::CALLS {
                let error = call.on(&store).await.expect_err("no thread");
                assert!(matches!(error.kind(), Ambiguous | Rejected), "{call:?}: {error:?}");
            }
        });
    });
    looked_up.join().expect("no panic comes through");
}
