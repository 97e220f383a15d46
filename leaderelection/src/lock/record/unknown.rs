//! The fields of a record that this library does not know.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// The JSON fields that a record's Rust type does not have: those that this library does not know, and some that it
/// parses only when needed, e.g. `completedJobs`. Their values are raw JSON.
#[derive(Clone, Debug, Default)]
pub struct UnknownFields(pub(super) BTreeMap<Cow<'static, str>, Box<RawValue>>);

impl UnknownFields {
    /// Returns the raw JSON of a field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.get())
    }

    /// Returns `true` if there are no unknown fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets a field, whose name should not be that of a known field. Does nothing if JSON cannot represent the value.
    pub fn set(&mut self, name: &str, value: &impl Serialize) {
        if let Ok(raw) = serde_json::value::to_raw_value(value) {
            self.0.insert(name.to_owned().into(), raw);
        }
    }

    /// Sets a field that is a whole number, without a copy of its name: each renewal of a session sets several.
    #[cfg(feature = "sessions")]
    pub(crate) fn set_number(&mut self, name: &'static str, number: u64) {
        if let Ok(raw) = RawValue::from_string(number.to_string()) {
            self.0.insert(name.into(), raw);
        }
    }

    /// Removes a field.
    pub(crate) fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Removes and parses a field on which no promise depends. A value that is not a `T` stays, and is not an error.
    pub(super) fn take_if_known<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        self.take_as(name, |json| serde_json::from_str(json).ok())
    }

    /// Does the same as [`take_if_known`](Self::take_if_known), but parses with `read`.
    pub(super) fn take_as<T>(&mut self, name: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let value = read(self.get(name)?)?;
        self.remove(name);
        Some(value)
    }

    /// Adds the fields of `other` that are missing here.
    #[cfg(feature = "majority")]
    pub(crate) fn add_missing(&mut self, other: &Self) {
        for (name, value) in &other.0 {
            self.0.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }

    /// Removes at least `excess` bytes of fields, the largest first. The field `kept` stays. Returns the names of the
    /// removed fields.
    pub(super) fn remove_largest_except(&mut self, kept: &str, mut excess: usize) -> Vec<String> {
        let mut removed = Vec::new();
        while excess > 0 {
            let others = self.texts().filter(|(name, _)| *name != kept);
            let Some(largest) = others.max_by_key(|(name, value)| name.len() + value.len()) else { break };
            let (name, length) = (largest.0.to_owned(), largest.0.len() + largest.1.len());
            self.0.remove(name.as_str());
            excess = excess.saturating_sub(length);
            removed.push(name);
        }
        removed
    }

    /// Returns the number of bytes in all names and values.
    pub(crate) fn size(&self) -> usize {
        self.texts().map(|(name, value)| name.len() + value.len()).sum()
    }

    /// Returns a field that is a whole number.
    #[cfg(feature = "sessions")]
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }

    fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, value.get()))
    }
}

impl PartialEq for UnknownFields {
    fn eq(&self, other: &Self) -> bool {
        self.texts().eq(other.texts())
    }
}

impl Eq for UnknownFields {}

impl Hash for UnknownFields {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.len().hash(state);
        self.texts().for_each(|field| field.hash(state));
    }
}

impl<'de> Deserialize<'de> for UnknownFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = BTreeMap<Cow<'static, str>, Box<RawValue>>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Self::Value::new();
                while let Some((name, value)) = map.next_entry()? {
                    match fields.entry(name) {
                        Entry::Vacant(entry) => {
                            entry.insert(value);
                        }
                        Entry::Occupied(entry) => {
                            return Err(A::Error::custom(format_args!("field {:?} occurs twice", entry.key())));
                        }
                    }
                }
                Ok(fields)
            }
        }

        deserializer.deserialize_map(Fields).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_with_the_most_bytes_of_name_and_value_is_removed_first() {
        let mut all = UnknownFields::default();
        // 21 bytes, 10, and 44.
        for (name, digits) in [("a", 20), ("names", 5), ("kept", 40)] {
            all.0.insert(name.into(), RawValue::from_string("1".repeat(digits)).unwrap());
        }
        assert_eq!(all.size(), 75);
        assert_ne!(all, UnknownFields::default());
        for (excess, names) in [(0, &[][..]), (21, &["a"]), (22, &["a", "names"]), (1000, &["a", "names"])] {
            assert_eq!(all.clone().remove_largest_except("kept", excess), names, "{excess}");
        }
    }
}
