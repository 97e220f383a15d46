//! The body of a fenced object: the token, the ids of the last writes, and the value.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::stale::StaleToken;
use crate::term::FencingToken;

/// The number of write ids that an object keeps. This number is part of the format and must not change: an object with
/// fewer ids has had no other writes.
///
/// With the ids, a writer whose answer was lost can find out whether its write was committed, even if others have
/// written since. More ids would tolerate more writes in between, but make every object larger.
pub(super) const KEPT_WRITES: usize = 16;

/// The content of a fenced object. One conditional write changes all of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Envelope {
    /// The largest token of all writes.
    pub(super) fencing_token: FencingToken,
    /// The ids of the last [`KEPT_WRITES`] writes, the newest first.
    ///
    /// Every write has a new id, so no two states of the object have the same body. Even if versions are hashes of the
    /// body, a version never comes back, and a write that names an old version can never be committed.
    pub(super) recent_writes: Vec<String>,
    /// The user's value as JSON; `None` in an object that was claimed before the first write.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<Box<RawValue>>,
}

/// Distinguishes a `null` from a missing field, because a user's value may be `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::deserialize(deserializer).map(Some)
}

impl Envelope {
    pub(super) fn check(&self, token: FencingToken) -> Result<(), StaleToken> {
        StaleToken::unless_highest(token, self.fencing_token)
    }

    /// Returns the envelope that replaces this one in the write `write_id`.
    pub(super) fn followed_by(&self, token: FencingToken, write_id: &str, value: Option<Box<RawValue>>) -> Self {
        let older = self.recent_writes.iter().take(KEPT_WRITES - 1).cloned();
        Self { fencing_token: token, recent_writes: std::iter::once(write_id.to_owned()).chain(older).collect(), value }
    }

    pub(super) fn shows(&self, write_id: &str) -> bool {
        self.recent_writes.iter().any(|id| id == write_id)
    }

    /// Returns `true` if this later state still has the ids of all writes since `earlier`.
    pub(super) fn shows_all_since(&self, earlier: &Self) -> bool {
        match earlier.recent_writes.first() {
            Some(newest) => self.shows(newest),
            None => self.recent_writes.len() < KEPT_WRITES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(writes: usize) -> Envelope {
        (1..=writes)
            .fold(Envelope::default(), |envelope, id| envelope.followed_by(FencingToken::new(1), &id.to_string(), None))
    }

    #[test]
    fn a_null_is_a_value_and_a_missing_field_is_none() {
        let parse = |json| serde_json::from_str::<Envelope>(json).unwrap();
        let null = parse(r#"{"fencingToken":1,"recentWrites":[],"value":null}"#);
        let none = parse(r#"{"fencingToken":1,"recentWrites":[]}"#);
        assert_eq!(null.value.as_deref().map(RawValue::get), Some("null"));
        assert!(none.value.is_none());
        assert_eq!(serde_json::to_string(&none).unwrap(), r#"{"fencingToken":1,"recentWrites":[]}"#);
    }

    #[test]
    fn the_newest_ids_are_kept() {
        let ids: Vec<String> = (5..=20).rev().map(|id| id.to_string()).collect();
        assert_eq!(after(20).recent_writes, ids);
    }

    #[test]
    fn a_gap_is_noticed() {
        for (earlier, later, known) in [(0, 15, true), (0, 16, false), (1, 16, true), (1, 17, false), (9, 9, true)] {
            assert_eq!(after(later).shows_all_since(&after(earlier)), known, "{earlier} to {later}");
        }
    }
}
