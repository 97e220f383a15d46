//! `--peers`: the candidates that follow get messages from the one that leads.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Builds this program with peers, which a newcomer's first run does without, and becomes that program. Returns only if
/// that fails.
pub fn become_one_with_peers() -> anyhow::Error {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    command.args(["run", "--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    command.args(["--bin", "failover", "--features", "peers"]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    command.arg("--").args(std::env::args_os().skip(1));
    eprintln!("building the demonstration with peers: they need an HTTP server, an HTTP client and TLS");
    anyhow::Error::new(command.exec()).context(format!("cannot start {}", cargo.display()))
}

#[cfg(feature = "peers")]
mod line {
    use std::time::Duration;

    use anyhow::Context as _;
    use leaderelection::DefaultLeaderElector;
    use leaderelection_arena::report::Report;
    use leaderelection_peers::{Attached, DEFAULT_PATH, Peers, SharedKey};
    use tokio::process::Command;

    /// The variable with the key that the candidates share.
    const KEY: &str = "FAILOVER_PEER_KEY";

    /// The time in which followers learn that the lease is released.
    const GRACE: Duration = Duration::from_secs(1);

    /// A key that the candidates of one run share.
    #[derive(Debug)]
    pub struct Key(String);

    impl Key {
        pub fn new() -> anyhow::Result<Self> {
            let mut bytes = [0; 32];
            let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
            anyhow::ensure!(filled == bytes.len(), "the system gave {filled} of {} random bytes", bytes.len());
            Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
        }

        pub fn give_to(&self, candidate: &mut Command) {
            candidate.env(KEY, &self.0);
        }
    }

    /// A candidate's line to the others.
    pub struct Line(Peers);

    impl Line {
        /// Begins to listen, at a port of its own.
        pub fn open() -> anyhow::Result<Self> {
            let key = SharedKey::new(std::env::var(KEY).with_context(|| format!("{KEY} is missing"))?)?;
            let here = "127.0.0.1:0".parse()?;
            let peers = Peers::builder().key(key).plain_http(true).allow("127.0.0.1".parse()?).listen(here).build()?;
            Ok(Self(peers))
        }

        pub fn address(&self) -> Option<String> {
            self.0.listens_at().map(|address| format!("http://{address}{DEFAULT_PATH}"))
        }

        pub fn attach(&self, elector: &DefaultLeaderElector) -> anyhow::Result<Attached> {
            Ok(self.0.attach(elector)?)
        }

        /// Ends, and reports how many messages came.
        pub async fn finish(self, attached: Option<Attached>) {
            if let Some(status) = attached.map(|attached| attached.status()) {
                Report::Messages { words: status.messages, reads_saved: status.reads_saved }.send();
            }
            self.0.finish(GRACE).await;
        }
    }
}

#[cfg(not(feature = "peers"))]
mod line {
    use leaderelection::DefaultLeaderElector;
    use tokio::process::Command;

    /// A program without peers becomes another one before it needs a key or a line.
    #[derive(Debug)]
    pub enum Key {}

    impl Key {
        pub fn new() -> anyhow::Result<Self> {
            anyhow::bail!("this program was built without peers")
        }

        pub fn give_to(&self, _: &mut Command) {
            match *self {}
        }
    }

    pub enum Line {}

    impl Line {
        pub fn open() -> anyhow::Result<Self> {
            anyhow::bail!("this program was built without peers")
        }

        pub fn address(&self) -> Option<String> {
            match *self {}
        }

        pub fn attach(&self, _: &DefaultLeaderElector) -> anyhow::Result<()> {
            match *self {}
        }

        pub async fn finish(self, _: Option<()>) {
            match self {}
        }
    }
}

pub use line::{Key, Line};
