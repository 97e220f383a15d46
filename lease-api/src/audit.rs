//! Who did what: one event for each write of a Lease.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;

use crate::caller::Caller;
use crate::object::Object;

/// A write of a Lease, as an audit log has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AuditEvent {
    /// The time on the server's clock.
    pub time: String,
    /// The name of the [`Caller`](crate::Caller); empty if the request has none.
    pub caller: String,
    /// The program that the client says it is.
    pub user_agent: String,
    /// `create`, `update`, `patch` or `delete`.
    pub verb: &'static str,
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// The holder before; empty if there was none.
    pub from_holder: String,
    /// The holder afterwards; empty if there is none.
    pub to_holder: String,
    /// The fencing token afterwards.
    pub token: u64,
    /// The version that the Lease has by this write.
    pub resource_version: String,
    /// `false` if nobody knows whether the write was committed.
    pub is_known: bool,
}

impl AuditEvent {
    /// The event of a write in the place of an object, or of nothing.
    pub(crate) fn of(
        write: &Object,
        before: Option<&Object>,
        now: DateTime<Utc>,
        caller: Option<&Caller>,
        user_agent: String,
        verb: &'static str,
    ) -> Self {
        Self {
            time: now.to_rfc3339_opts(SecondsFormat::Micros, true),
            caller: caller.map(|caller| caller.name.clone()).unwrap_or_default(),
            user_agent: shortened(&user_agent),
            verb,
            namespace: write.place().namespace.clone(),
            name: write.place().name.clone(),
            from_holder: before.map(|before| shortened(before.holder())).unwrap_or_default(),
            to_holder: shortened(write.holder()),
            token: write.token(),
            resource_version: write.resource_version().to_owned(),
            is_known: true,
        }
    }
}

/// The first characters of a text that a client chooses, and that may be as long as a body.
fn shortened(text: &str) -> String {
    text.chars().take(256).collect()
}

/// Receives each write.
pub(crate) type Tell = dyn Fn(&AuditEvent) + Send + Sync;

/// The audit of a write whose answer has not come. A client that closes its connection drops it, and the write may have been
/// sent.
pub(crate) struct WriteInFlight<'a> {
    tell: &'a Tell,
    event: Option<AuditEvent>,
}

impl<'a> WriteInFlight<'a> {
    pub(crate) fn new(tell: &'a Tell, event: AuditEvent) -> Self {
        Self { tell, event: Some(AuditEvent { is_known: false, ..event }) }
    }

    /// Takes the outcome: `true` for a committed write, `false` for one that may be; `None` for one that is not.
    pub(crate) fn ended(&mut self, outcome: Option<bool>) {
        let event = self.event.take();
        if let (Some(is_known), Some(event)) = (outcome, event) {
            (self.tell)(&AuditEvent { is_known, ..event });
        }
    }
}

impl Drop for WriteInFlight<'_> {
    fn drop(&mut self) {
        self.ended(Some(false));
    }
}

/// Whoever wants to know of each write.
#[derive(Clone, Default)]
pub(crate) struct Audit(pub(crate) Option<Arc<Tell>>);

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Audit").field(&self.0.is_some()).finish()
    }
}
