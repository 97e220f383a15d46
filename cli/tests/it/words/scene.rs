//! A lock, and all who tell its state: the table says in which words.

use std::process::Command;
use std::time::Duration;

use super::table::{step, words};
use crate::browser::picture;
use crate::dashboard::dashboard;
use crate::serve::process::eventually;
use crate::serve::sidecar::{Sidecar, serve};
use crate::support::{Place, Running, end, end_of, leaderelect};

pub(super) fn has_all(text: &str, cause: &str, view: &str) -> bool {
    words(cause, view).iter().all(|words| text.contains(words) || text.contains(&capital(words)))
}

fn capital(words: &str) -> String {
    let (first, rest) = words.split_at(1);
    first.to_uppercase() + rest
}

/// The text of a page, without its marks.
pub(super) fn plain(page: &str) -> String {
    let text: String = page.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
    text.replace("&#34;", "\"").replace("&#39;", "'")
}

/// Waits until the page at `path` says what the table says.
pub(super) async fn shows(sidecar: &Sidecar, path: &str, cause: &str, view: &str) {
    says(cause, view, async || plain(&sidecar.ask(path).await.1)).await;
    if path == "/" {
        let name = format!("{}-{view}", cause.replace(", ", "-").replace(' ', "-"));
        picture(sidecar.url().to_owned(), name, step(cause, view).map(capital)).await;
    }
}

pub(super) async fn says(cause: &str, view: &str, mut text: impl AsyncFnMut() -> String) {
    let mut last = String::new();
    let seen = tokio::time::timeout(crate::support::PATIENCE, async {
        loop {
            last = text().await;
            if has_all(&last, cause, view) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    assert!(seen.await.is_ok(), "{cause}, {view}: {last}");
}

/// The place of a lock, as the views are given it: the arguments that name the lock, and its prefixes.
pub(super) struct Scene {
    pub(super) lock: Vec<String>,
    pub(super) prefixes: Vec<String>,
}

impl Scene {
    pub(super) fn new(lock: String, prefix: String) -> Self {
        Self { lock: vec![lock], prefixes: vec![prefix] }
    }

    pub(super) fn in_place(place: &Place) -> Self {
        Self::new(place.lock("a"), place.prefix())
    }

    pub(super) fn with_keys(mut command: Command) -> Command {
        command.env("AWS_ACCESS_KEY_ID", "id").env("AWS_SECRET_ACCESS_KEY", "key");
        command
    }

    pub(super) async fn candidate(&self, identity: &str, more: &[&str]) -> Sidecar {
        let mut command = Self::with_keys(serve(&self.lock[0], identity));
        Sidecar::spawn(command.args(["--drain", "0s"]).args(more)).await
    }

    pub(super) async fn dashboard(&self) -> Sidecar {
        let mut command = dashboard(&self.prefixes[0], "100ms");
        command.args(&self.prefixes[1..]);
        Sidecar::spawn(&mut Self::with_keys(command)).await
    }

    pub(super) fn watch(&self) -> Running {
        Running::of(Self::with_keys(Self::command(&["watch", "--interval", "50ms"], &self.lock, &[])))
    }

    pub(super) fn command(command: &[&str], named: &[String], more: &[&str]) -> Command {
        let mut command = leaderelect(command);
        command.args(named).args(more);
        command
    }

    pub(super) async fn sidecar_says(&self, sidecar: &Sidecar, cause: &str) {
        shows(sidecar, "/", cause, "page").await;
        shows(sidecar, "/readyz", cause, "readyz").await;
        shows(sidecar, "/leader", cause, "leader").await;
        says(cause, "sidecar", async || sidecar.said()).await;
    }

    /// Waits until the lease of a leader that does not renew it has expired.
    pub(super) async fn expires(&self) {
        let status = async || end(&["status", &self.lock[0]]).stdout;
        eventually("the lease has expired", async || status().await.contains("has expired").then_some(())).await;
    }

    /// Looks from outside.
    pub(super) async fn others_say(&self, cause: &str) {
        shows(&self.dashboard().await, "/", cause, "dashboard").await;
        let mut watch = self.watch();
        watch.wait_for_line_of(&words(cause, "watch"));
        self.commands_say(cause);
    }

    /// Asks all who look once.
    pub(super) fn commands_say(&self, cause: &str) {
        for (view, command, named, more) in [
            ("status", &["status"][..], &self.lock, &[][..]),
            ("json", &["status", "-o", "json"], &self.lock, &[]),
            ("list", &["list"], &self.prefixes, &[]),
            ("json", &["list", "-o", "json"], &self.prefixes, &[]),
            ("run", &["run", "--no-wait", "--identity", "gamma"], &self.lock, &["--", "true"]),
        ] {
            if words(cause, view).is_empty() || named.is_empty() {
                continue;
            }
            let ended = end_of(Self::with_keys(Self::command(command, named, more)));
            let text = ended.stdout.clone() + &ended.stderr;
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(has_all(&text, cause, view), "{cause}, {view}: {ended:?}");
        }
    }
}
