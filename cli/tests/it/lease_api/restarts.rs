//! A server that starts again, on a socket that somebody keeps for it.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use reqwest::Client;
use rustix::process::Signal;

use super::{LEASES, lease_api};
use crate::serve::process::eventually;
use crate::serve::sidecar::Sidecar;
use crate::support::{Place, end};

/// Clients that ask without a pause.
struct Crowd {
    answers: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Crowd {
    /// Some keep their connections, and some have one for each request.
    fn start(url: &str) -> Self {
        let (answers, is_over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let ask = |kept| {
            let client = Client::builder().pool_max_idle_per_host(kept).build().unwrap();
            let (answers, is_over, target) = (Arc::clone(&answers), Arc::clone(&is_over), format!("{url}{LEASES}/web"));
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let answer = client.get(&target).send().await.unwrap();
                    assert_eq!(answer.status(), 404);
                    answer.bytes().await.unwrap();
                    answers.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        let tasks = [0, 0, 0, 1, 1].map(ask).into();
        Self { answers, is_over, tasks }
    }

    async fn is_answered(&self) {
        let enough = self.answers.load(Ordering::Relaxed) + 50;
        eventually("the clients are answered", async || (self.answers.load(Ordering::Relaxed) >= enough).then_some(()))
            .await;
    }

    /// Fails if a request has failed.
    async fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_fails_no_request_while_another_process_keeps_the_socket() {
    let (place, socket) = (Place::new(), TcpListener::bind("127.0.0.1:0").unwrap());
    let start = async || {
        let mut command = lease_api(&place.file("leases"), "stdin");
        Sidecar::spawn(command.args(["--drain", "0s"]).stdin(OwnedFd::from(socket.try_clone().unwrap()))).await
    };
    let mut server = start().await;
    assert_eq!(server.url(), format!("http://{}", socket.local_addr().unwrap()));
    let crowd = Crowd::start(server.url());
    for is_overlapping in [false, true, false, true, false] {
        crowd.is_answered().await;
        let next = if is_overlapping { Some(start().await) } else { None };
        server.signal(Signal::TERM);
        assert_eq!(server.ended().await.code(), Some(0), "{}", server.said());
        server = match next {
            Some(next) => next,
            None => start().await,
        };
    }
    crowd.is_answered().await;
    crowd.end().await;
}

#[test]
fn a_standard_input_that_is_no_socket_is_refused() {
    let said = end(&["lease-api", "--store", "memory:leases", "--listen", "stdin"]);
    assert_eq!(said.code, Some(64), "{}", said.stderr);
    assert!(said.stderr.contains("StandardInput=socket"), "{}", said.stderr);
}
