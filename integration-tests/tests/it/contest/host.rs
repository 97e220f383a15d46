//! The servers of a contest, which are killed and frozen like its contenders.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use leaderelection::implement::Precondition;
use leaderelection_integration_tests::proxy::Fault;
use leaderelection_integration_tests::servers::azurite::Azurite;
use leaderelection_integration_tests::servers::fake_gcs::{FakeGcs, Options};
use leaderelection_integration_tests::servers::process::ServerProcess;
use leaderelection_integration_tests::servers::seaweedfs::SeaweedFs;
use leaderelection_integration_tests::servers::unique_name;
use rustix::process::Signal;
use tokio::task::block_in_place;

use crate::cloud::Cloud;
use crate::cloud::azure::Azure;
use crate::cloud::gcs::Gcs;
use crate::cloud::s3::S3;

/// The pause between two tries to write to a server that has just been started.
const PAUSE: Duration = Duration::from_millis(50);

/// A server of one contest.
pub(super) struct Host {
    server: Server,
    pub(super) cloud: Arc<Cloud>,
}

enum Server {
    Seaweedfs(SeaweedFs),
    Azurite(Azurite),
    /// The fake runs in this process, so its death and its standstill are played.
    Google(Arc<FakeGcs>),
}

/// The loss of a part for all contenders.
#[derive(Clone, Copy, Debug)]
pub(super) enum Loss {
    /// Nobody reaches it.
    CutOff(Fault),
    /// Its server ends.
    Killed,
    /// Its server stands still.
    Frozen,
}

impl Host {
    pub(super) async fn seaweedfs() -> Self {
        let server = block_in_place(|| SeaweedFs::start(Path::new(env!("CARGO_TARGET_TMPDIR"))));
        server.create_bucket("bucket").await;
        Self { cloud: Cloud::of(S3::on(&server)), server: Server::Seaweedfs(server) }
    }

    pub(super) async fn azurite() -> Self {
        let server = block_in_place(|| Azurite::start(Path::new(env!("CARGO_TARGET_TMPDIR"))));
        server.container("container").create(None).await.expect("a container");
        Self { cloud: Cloud::of(Azure::on(&server)), server: Server::Azurite(server) }
    }

    pub(super) async fn google() -> Self {
        let server = Arc::new(FakeGcs::start(Options::default()).await);
        Self { cloud: Cloud::of(Gcs::on(Arc::clone(&server)).await), server: Server::Google(server) }
    }

    /// Ends the server in the midst of its requests.
    pub(super) fn kill(&mut self) {
        match &mut self.server {
            Server::Seaweedfs(server) => block_in_place(|| server.process().end(Signal::KILL)),
            // It writes its index every five seconds, and at this signal. After SIGKILL it would be a part that goes back in
            // time, for which nothing is promised.
            Server::Azurite(server) => block_in_place(|| server.process().end(Signal::TERM)),
            Server::Google(server) => server.stop(),
        }
    }

    /// Returns `true` if the server ends when it has answered its last request.
    pub(super) fn ends_gracefully(&self) -> bool {
        matches!(self.server, Server::Azurite(_))
    }

    /// Starts the server again, and waits until it carries out writes.
    pub(super) async fn start_again(&mut self) {
        match &mut self.server {
            Server::Google(server) => server.start_again().await,
            _ => block_in_place(|| self.process().expect("a process").start_again()),
        }
        self.until_it_writes().await;
    }

    /// Lets the server stand still.
    pub(super) fn freeze(&mut self) {
        match &self.server {
            Server::Google(server) => server.set_frozen(true),
            _ => self.process().expect("a process").signal(Signal::STOP),
        }
    }

    /// Lets the server go on, and waits until it carries out writes.
    pub(super) async fn thaw(&mut self) {
        match &self.server {
            Server::Google(server) => server.set_frozen(false),
            _ => self.process().expect("a process").signal(Signal::CONT),
        }
        self.until_it_writes().await;
    }

    fn process(&mut self) -> Option<&mut ServerProcess> {
        match &mut self.server {
            Server::Seaweedfs(server) => Some(server.process()),
            Server::Azurite(server) => Some(server.process()),
            Server::Google(_) => None,
        }
    }

    /// Waits until the server carries out writes. A new server answers before it does.
    pub(super) async fn until_it_writes(&self) {
        let store = self.cloud.store().await;
        let key = format!("{}-awake", unique_name());
        while store.put(&key, Bytes::from_static(b"{}"), &Precondition::Absent).await.is_err() {
            // No event reports that a server is ready, and the caller's time is limited.
            if store.get(&key).await.is_ok_and(|found| found.is_some()) {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
