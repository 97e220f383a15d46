//! The address of a leader, bound to the leader's term.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::unknown::UnknownFields;

const URL: &str = "url";
const TERM: &str = "term";

/// The address at which the leader of one term answers: the field `peer` of a [record](super::LeaderElectionRecord).
///
/// ```json
/// {"url": "https://10.0.1.42:8443/health/leadership", "term": 7}
/// ```
///
/// The address comes from the store, so everyone who can write the lock can name any address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PeerAddress {
    /// The URL that the leader [advertises](crate::LeaderElectionConfigBuilder::advertise).
    pub url: String,
    /// The fencing token of the leader's term. The address counts only in this term.
    pub term: u64,
    /// Fields that this library does not know, kept unchanged when the record is rewritten.
    pub unknown: UnknownFields,
}

impl PeerAddress {
    /// Creates the address of the leader of one term.
    #[must_use]
    pub fn new(url: impl Into<String>, term: u64) -> Self {
        Self { url: url.into(), term, unknown: UnknownFields::default() }
    }

    /// Reads an address; `None` if the JSON is something else.
    pub(super) fn from_json(json: &str) -> Option<Self> {
        let mut unknown: UnknownFields = serde_json::from_str(json).ok()?;
        let url = serde_json::from_str(unknown.0.remove(URL)?.get()).ok()?;
        let term = serde_json::from_str(unknown.0.remove(TERM)?.get()).ok()?;
        Some(Self { url, term, unknown })
    }
}

impl Serialize for PeerAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry(URL, &self.url)?;
        fields.serialize_entry(TERM, &self.term)?;
        for (name, value) in &self.unknown.0 {
            fields.serialize_entry(name, value)?;
        }
        fields.end()
    }
}
