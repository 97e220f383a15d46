//! Histories of the calls of processes, which a program in another language judges: see `integration-tests/porcupine`.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::store::ListedObject;
use leaderelection::{
    ConditionalStore, Precondition, StoreError, StoreErrorKind, Version, VersionedObject, async_trait,
};
use serde_json::{Value, json};

/// The folder with the judge, which needs Go.
pub const JUDGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/porcupine");

/// A store whose reads and writes are events of a history: one line for the call, and one for its answer.
///
/// A value is the digest of a body. A write says which value it replaces, because versions are each store's own.
#[derive(Debug)]
pub struct Recorded {
    store: Arc<dyn ConditionalStore>,
    history: File,
    calls: AtomicU64,
    values: Mutex<HashMap<(String, Version), String>>,
}

impl Recorded {
    /// Adds the history of this process to a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened.
    pub fn new(store: Arc<dyn ConditionalStore>, history: &Path) -> io::Result<Self> {
        let history = OpenOptions::new().create(true).append(true).open(history)?;
        Ok(Self { store, history, calls: AtomicU64::default(), values: Mutex::default() })
    }

    /// Writes an event in one piece, so that a kill leaves no part of it and no other process comes between.
    fn write(&self, call: u64, kind: &str, mut event: Value) {
        let at = SystemClock.now().as_nanos();
        for (name, value) in
            [("process", json!(std::process::id())), ("call", json!(call)), ("at", json!(at)), ("type", json!(kind))]
        {
            event[name] = value;
        }
        (&self.history).write_all(format!("{event}\n").as_bytes()).unwrap();
    }

    fn ask(&self, question: Value) -> u64 {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        self.write(call, "invoke", question);
        call
    }

    fn remember(&self, key: &str, version: &Version, value: &str) {
        self.values.lock().unwrap().insert((key.to_owned(), version.clone()), value.to_owned());
    }

    /// The value that a write replaces. A version that this process has never seen is one that nobody has written.
    fn expected(&self, key: &str, precondition: &Precondition) -> Option<String> {
        let Precondition::Matches(version) = precondition else { return None };
        let values = self.values.lock().unwrap();
        Some(values.get(&(key.to_owned(), version.clone())).cloned().unwrap_or_else(|| format!("version {version:?}")))
    }
}

#[async_trait]
impl ConditionalStore for Recorded {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        let call = self.ask(json!({ "object": key, "operation": "read" }));
        let found = self.store.get(key).await;
        match &found {
            Ok(found) => {
                let value = found.as_ref().map(|found| digest(&found.body));
                if let (Some(found), Some(value)) = (found, &value) {
                    self.remember(key, &found.version, value);
                }
                self.write(call, "ok", json!({ "value": value }));
            }
            Err(_) => self.write(call, "fail", json!({})),
        }
        found
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        let (expected, new) = (self.expected(key, precondition), digest(&body));
        let call = self.ask(json!({ "object": key, "operation": "write", "expected": expected, "new": new }));
        let written = self.store.put(key, body, precondition).await;
        let kind = match &written {
            Ok(version) => {
                self.remember(key, version, &new);
                "ok"
            }
            Err(error) => match error.kind() {
                StoreErrorKind::Conflict => "conflict",
                StoreErrorKind::Rejected => "fail",
                _ => "info",
            },
        };
        self.write(call, kind, json!({}));
        written
    }

    async fn delete(&self, key: &str, expected: &Version) -> Result<(), StoreError> {
        self.store.delete(key, expected).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
        self.store.list(prefix).await
    }

    fn describe(&self, key: &str) -> String {
        self.store.describe(key)
    }

    fn has_unique_versions(&self) -> bool {
        self.store.has_unique_versions()
    }

    fn min_write_interval(&self) -> Option<std::time::Duration> {
        self.store.min_write_interval()
    }
}

/// The digest of a body, which is the same in every process.
fn digest(body: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Lets the judge read a history. Returns `None` without Go. `lies` says that a conflict or a refusal may hide an effect.
#[must_use]
pub fn verdict(history: &Path, lies: bool) -> Option<Result<(), String>> {
    let mut judge = Command::new("go");
    judge.args(["run", "-C", JUDGE, "."]).args(lies.then_some("-lies")).stdin(File::open(history).unwrap());
    let judged = match judge.output() {
        Ok(judged) => judged,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            println!("skipped: Go is not installed, so the history is not judged");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    println!("{}", String::from_utf8_lossy(&judged.stdout).trim_end());
    Some(if judged.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&judged.stderr).into_owned()) })
}

/// Demands that some order of the calls explains the answers. A history that nothing explains is kept.
///
/// # Panics
///
/// If there is no such order.
pub fn judge(history: &Path, lies: bool) {
    if let Some(Err(refused)) = verdict(history, lies) {
        let kept = history.with_extension("refused");
        std::fs::copy(history, &kept).unwrap();
        panic!("{}: {refused}", kept.display());
    }
}
