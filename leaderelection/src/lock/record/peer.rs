//! The addresses of a leader, bound to the leader's term.

use std::time::Duration;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::unknown::UnknownFields;

const URL: &str = "url";
const TERM: &str = "term";
const CLIENTS: &str = "clients";
const RETRY_PERIOD: &str = "retryPeriodMillis";

/// The addresses at which the leader of one term answers: the field `peer` of a [record](super::LeaderElectionRecord).
///
/// ```json
/// {"url": "https://10.0.1.42:8443/health/leadership", "term": 7, "clients": "https://10.0.1.42", "retryPeriodMillis": 2000}
/// ```
///
/// An address comes from the store, so everyone who can write the lock can name any address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PeerAddress {
    /// The URL that the leader [advertises](crate::LeaderElectionConfigBuilder::advertise); empty if there is none.
    pub url: String,
    /// The fencing token of the leader's term. The addresses count only in this term.
    pub term: u64,
    /// The URL for [clients](crate::LeaderElectionConfigBuilder::advertise_to_clients); `None` if clients use `url`.
    pub clients: Option<String>,
    /// The pause between the leader's renewals, in whole milliseconds. Records of earlier versions have none.
    pub retry_period: Option<Duration>,
    /// Fields that this library does not know, kept unchanged when the record is rewritten.
    pub unknown: UnknownFields,
}

impl PeerAddress {
    /// Creates the address of the leader of one term.
    #[must_use]
    pub fn new(url: impl Into<String>, term: u64) -> Self {
        Self { url: url.into(), term, clients: None, retry_period: None, unknown: UnknownFields::default() }
    }

    /// Reads an address; `None` if the JSON is something else.
    pub(super) fn from_json(json: &str) -> Option<Self> {
        let mut unknown: UnknownFields = serde_json::from_str(json).ok()?;
        let term = unknown.take_if_known(TERM)?;
        let (url, clients) = (unknown.take_if_known::<String>(URL), unknown.take_if_known(CLIENTS));
        // A `url` that was not taken is not a string.
        if unknown.0.contains_key(URL) || url.is_none() && clients.is_none() {
            return None;
        }
        let retry_period = unknown.take_if_known(RETRY_PERIOD).map(Duration::from_millis);
        Some(Self { url: url.unwrap_or_default(), term, clients, retry_period, unknown })
    }
}

impl Serialize for PeerAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        // `from_json` needs at least one of the two addresses.
        if !self.url.is_empty() || self.clients.is_none() {
            fields.serialize_entry(URL, &self.url)?;
        }
        fields.serialize_entry(TERM, &self.term)?;
        if let Some(clients) = &self.clients {
            fields.serialize_entry(CLIENTS, clients)?;
        }
        if let Some(retry_period) = self.retry_period {
            fields.serialize_entry(RETRY_PERIOD, &retry_period.as_millis())?;
        }
        // If one of these two fields has a value that is not understood, reading keeps it among the unknown fields. It
        // is written only if the address has no value of its own, because a name may occur only once.
        let is_written = |name: &str| match name {
            CLIENTS => self.clients.is_some(),
            RETRY_PERIOD => self.retry_period.is_some(),
            _ => false,
        };
        for (name, value) in self.unknown.0.iter().filter(|(name, _)| !is_written(name)) {
            fields.serialize_entry(name, value)?;
        }
        fields.end()
    }
}
