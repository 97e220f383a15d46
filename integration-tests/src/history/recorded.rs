//! A store whose calls are events of a history.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use leaderelection::implement::{
    ConditionalStore, ListedPage, PageToken, Precondition, Version, VersionedObject, async_trait,
};
use leaderelection::{LeaderElectionRecord, StoreError, StoreErrorKind};
use serde_json::json;

use super::History;
use crate::mutex::lock;
use crate::proxy::Kind;

/// A store in which all reads and writes of one object are events of a history.
///
/// A write says which value it replaces, because versions are each store's own.
#[derive(Debug)]
pub struct Recorded {
    store: Arc<dyn ConditionalStore>,
    object: String,
    history: Arc<History>,
    values: Mutex<HashMap<Version, String>>,
}

impl Recorded {
    /// Notes what a process asks of an object.
    #[must_use]
    pub fn new(store: Arc<dyn ConditionalStore>, object: &str, history: Arc<History>) -> Arc<Self> {
        Arc::new(Self { store, object: object.to_owned(), history, values: Mutex::default() })
    }

    fn remember(&self, version: &Version, value: &str) {
        lock(&self.values).insert(version.clone(), value.to_owned());
    }

    /// The value that a write replaces. A version that this process has never seen is one that nobody has written.
    fn expected(&self, precondition: &Precondition) -> Option<String> {
        let Precondition::Matches(version) = precondition else { return None };
        Some(lock(&self.values).get(version).cloned().unwrap_or_else(|| format!("version {version:?}")))
    }
}

#[async_trait]
impl ConditionalStore for Recorded {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        if key != self.object {
            return self.store.get(key).await;
        }
        let call = self.history.begin(json!({ "object": key, "operation": "read" }));
        let found = self.store.get(key).await;
        match &found {
            Ok(found) => {
                let value = found.as_ref().map(|found| value(&found.body));
                if let (Some(found), Some(value)) = (found, &value) {
                    self.remember(&found.version, value);
                }
                self.history.end(call, "ok", json!({ "value": value }));
            }
            Err(_) => self.history.end(call, "fail", json!({})),
        }
        found
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        if key != self.object {
            return self.store.put(key, body, precondition).await;
        }
        let (expected, new) = (self.expected(precondition), value(&body));
        let operation = operation(&body, precondition);
        let question = json!({ "object": key, "operation": operation, "expected": expected, "new": new });
        let call = self.history.begin(question);
        let written = self.store.put(key, body, precondition).await;
        let kind = match &written {
            Ok(version) => {
                self.remember(version, &new);
                "ok"
            }
            Err(error) => match error.kind() {
                StoreErrorKind::Conflict => "conflict",
                StoreErrorKind::Rejected => "fail",
                _ => "info",
            },
        };
        self.history.end(call, kind, json!({}));
        written
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.store.delete(key, expected).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        self.store.list_page(prefix, token, limit).await
    }

    /// Contenders reach one object at different proxies, and candidates of one majority have the same names for its parts.
    fn describe(&self, key: &str) -> String {
        if key == self.object { key.to_owned() } else { self.store.describe(key) }
    }

    fn min_write_interval(&self) -> Option<Duration> {
        self.store.min_write_interval()
    }
}

fn record(body: &[u8]) -> Option<LeaderElectionRecord> {
    LeaderElectionRecord::from_json(body, Duration::MAX).ok()
}

fn operation(body: &[u8], precondition: &Precondition) -> &'static str {
    match record(body).map(|record| Kind::of_write(&record, *precondition == Precondition::Absent)) {
        Some(Kind::Create | Kind::Takeover) => "acquire",
        Some(Kind::Renewal) => "renew",
        Some(Kind::Release) => "release",
        _ => "write",
    }
}

/// A short text that stands for a body, in every process and on every store, some of which spell a record in another way.
fn value(body: &[u8]) -> String {
    let Some(record) = record(body) else { return digest(body) };
    let holder = if record.is_released() { "nobody" } else { &record.holder_identity };
    format!("{holder}, {}, {}", record.leader_transitions, digest(&record.to_json()))
}

fn digest(body: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
