//! A running `leaderelect serve`, and those who ask it.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Command, Stdio};

use reqwest::{Response, StatusCode};
use serde_json::Value;

use super::process::{Process, eventually};
use crate::support::CLIENT;

/// The command, on a port of its own.
pub(crate) fn serve(lock: &str, identity: &str) -> Command {
    serve_at("127.0.0.1:0", lock, identity)
}

/// The command, with the usual lease, which no busy machine loses, and short pauses.
pub(crate) fn serve_at(listen: &str, lock: &str, identity: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leaderelect"));
    command.args(["serve", "--lock", lock, "--identity", identity, "--listen", listen, "--retry-period", "200ms"]);
    command.env_remove("RUST_LOG").env_remove("LEADERELECTION_HTTP_TOKEN").stdin(Stdio::null());
    command
}

/// The URL of a lock in `directory`.
pub(crate) fn lock_in(directory: &Path) -> String {
    format!("file://{}/lock", directory.display())
}

/// A running `leaderelect serve`.
#[derive(Debug)]
pub(crate) struct Sidecar {
    process: Process,
    url: String,
}

impl Sidecar {
    /// Starts one that does not drain.
    pub(crate) async fn start(lock: &str, identity: &str) -> Self {
        Self::spawn(serve(lock, identity).args(["--drain", "0s"])).await
    }

    /// Starts `command`, and waits until it serves.
    pub(crate) async fn spawn(command: &mut Command) -> Self {
        let mut process = Process::spawn(command);
        let url = eventually("the sidecar serves", async || {
            let said = process.said();
            assert!(!process.has_ended(), "it ended: {said}");
            let url = said.lines().find_map(|line| line.strip_prefix("leaderelect: serving "))?;
            Some(url.trim_end_matches('/').to_owned())
        })
        .await;
        Self { process, url }
    }

    /// Such as `http://127.0.0.1:31234`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Asks over a connection of its own.
    pub(crate) async fn get(&self, path: &str) -> Response {
        CLIENT.get(format!("{}{path}", self.url)).send().await.unwrap()
    }

    /// Status and body.
    pub(crate) async fn ask(&self, path: &str) -> (StatusCode, String) {
        let answer = self.get(path).await;
        (answer.status(), answer.text().await.unwrap())
    }

    pub(crate) async fn leader(&self) -> Value {
        let (status, body) = self.ask("/leader").await;
        assert_eq!(status, StatusCode::OK);
        serde_json::from_str(&body).unwrap()
    }

    /// Waits until it says that `name` leads, and returns all that it says.
    pub(crate) async fn sees(&self, name: &str) -> Value {
        eventually(&format!("{name:?} leads"), async || {
            Some(self.leader().await).filter(|leader| leader["name"] == name)
        })
        .await
    }

    /// Waits until `path` is answered with `status`, and returns the body.
    pub(crate) async fn answers(&self, path: &str, status: StatusCode) -> String {
        eventually(&format!("{path} is answered {status}"), async || {
            let (found, body) = self.ask(path).await;
            (found == status).then_some(body)
        })
        .await
    }
}

impl Deref for Sidecar {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Sidecar {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}
