//! A running `leaderelect serve`, and those who ask it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reqwest::{Client, Response, StatusCode};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// For whatever has to happen sooner or later, on however busy a machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `look` sees what it looks for.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The command, on a port of its own.
pub(crate) fn serve(lock: &str, identity: &str) -> Command {
    serve_at("127.0.0.1:0", lock, identity)
}

/// The command, with the usual lease, which no busy machine loses, and short pauses.
pub(crate) fn serve_at(listen: &str, lock: &str, identity: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leaderelect"));
    command.args(["serve", "--lock", lock, "--identity", identity, "--listen", listen, "--retry", "200ms"]);
    command.env_remove("RUST_LOG").env_remove("LEADERELECTION_HTTP_TOKEN").stdin(Stdio::null());
    command
}

/// The URL of a lock in `directory`.
pub(crate) fn lock_in(directory: &Path) -> String {
    format!("file://{}/lock", directory.display())
}

/// The process, until it is dropped.
#[derive(Debug)]
pub(crate) struct Sidecar {
    child: Child,
    said: Arc<Mutex<String>>,
    url: String,
}

impl Sidecar {
    /// Starts one with nothing special about it.
    pub(crate) async fn start(lock: &str, identity: &str) -> Self {
        Self::spawn(&mut serve(lock, identity)).await
    }

    /// Starts `command`, and waits until it serves.
    pub(crate) async fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let ear = Arc::clone(&said);
        std::thread::spawn(move || {
            let mut line = String::new();
            while lines.read_line(&mut line).is_ok_and(|read| read > 0) {
                ear.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        let mut sidecar = Self { child, said, url: String::new() };
        sidecar.url = eventually("the sidecar serves", async || {
            let said = sidecar.said();
            assert!(sidecar.child.try_wait().unwrap().is_none(), "it ended: {said}");
            let url = said.lines().find_map(|line| line.strip_prefix("leaderelect: serving "))?;
            Some(url.trim_end_matches('/').to_owned())
        })
        .await;
        sidecar
    }

    /// What it has said so far.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Such as `http://127.0.0.1:31234`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits until it has ended by itself.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        eventually("the sidecar ends", async || self.child.try_wait().unwrap()).await
    }

    /// Asks over a connection of its own.
    pub(crate) async fn get(&self, path: &str) -> Response {
        Client::new().get(format!("{}{path}", self.url)).send().await.unwrap()
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

impl Drop for Sidecar {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
