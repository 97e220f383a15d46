//! A Lease as a client writes it: its fields, read as an API server reads them.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use leaderelection::lock::DEFAULT_MAX_LEASE_DURATION;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::owner::{self, OwnerReference};
use crate::status::{API_VERSION, Failure, KIND};

/// The annotation with the fencing token. Only the server writes it.
pub(crate) const TOKEN: &str = "leaderelection/token";

/// The longest lease that candidates of this library accept, in seconds.
const LONGEST: i32 = DEFAULT_MAX_LEASE_DURATION.as_secs() as i32;

/// The parts of the metadata that a client decides. Everything else is the server's.
const METADATA: [&str; 3] = ["annotations", "labels", "ownerReferences"];

/// The parts of the metadata that a client may send, and that the server decides.
const SERVERS: [&str; 10] = [
    "creationTimestamp",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "uid",
];

/// The `spec` of a Lease. A field that is absent stays absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Spec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) holder_identity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lease_duration_seconds: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) acquire_time: Option<MicroTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) renew_time: Option<MicroTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lease_transitions: Option<i32>,
}

impl Spec {
    /// The holder; empty if there is none.
    pub(crate) fn holder(&self) -> &str {
        self.holder_identity.as_deref().unwrap_or_default()
    }

    /// Returns `true` if these are the fields with which client-go's elector releases a Lease. A person who releases one
    /// empties its holder only.
    pub(crate) fn is_release_of_elector(&self) -> bool {
        self.holder().is_empty()
            && self.lease_duration_seconds == Some(1)
            && self.renew_time.is_some()
            && self.acquire_time == self.renew_time
    }
}

/// A time of a Lease. It has exactly six digits behind the seconds: client-go reads no others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MicroTime(pub(crate) DateTime<Utc>);

impl Serialize for MicroTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // In a leap second, chrono has more than a second's nanoseconds, which Go cannot read.
        let time = DateTime::from_timestamp_micros(self.0.timestamp_micros()).unwrap_or(self.0);
        serializer.serialize_str(&time.to_rfc3339_opts(SecondsFormat::Micros, true))
    }
}

impl<'de> Deserialize<'de> for MicroTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.split_once('.').and_then(|(_, rest)| rest.find(|c: char| !c.is_ascii_digit()));
        let time = DateTime::parse_from_rfc3339(&text).ok().filter(|_| digits == Some(6));
        let Some(time) = time else {
            let why = format!("{text:?} is no time with six digits behind the seconds");
            return Err(serde::de::Error::custom(why));
        };
        Ok(Self(time.to_utc()))
    }
}

/// A Lease that a client wants to have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Draft {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) spec: Spec,
}

impl Draft {
    /// Reads a Lease whose name is known, and drops what a Lease does not have.
    pub(crate) fn read(name: &str, object: &Value, is_strict: bool) -> Result<Self, Failure> {
        if is_strict {
            refuse_unknown(object)?;
        }
        let sent = &object["metadata"];
        let mut metadata = Map::new();
        for field in METADATA {
            let value = &sent[field];
            if !value.is_null() && !is_empty(value) {
                metadata.insert(field.to_owned(), read_metadata(name, field, value, is_strict)?);
            }
        }
        if !sent["finalizers"].is_null() && !is_empty(&sent["finalizers"]) {
            let why = "Forbidden: nothing would wait for a finalizer here: a Lease is deleted at once";
            return Err(Failure::invalid(name, "metadata.finalizers", why));
        }
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove(TOKEN);
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
        let text = |field| -> Result<Option<String>, Failure> {
            Ok(take(sent, "metadata", field)?.filter(|text: &String| !text.is_empty()))
        };
        let spec = &object["spec"];
        if !(spec.is_null() || spec.is_object()) {
            return Err(Failure::undecodable("spec", "no object"));
        }
        let spec = Spec {
            holder_identity: take(spec, "spec", "holderIdentity")?,
            lease_duration_seconds: take(spec, "spec", "leaseDurationSeconds")?,
            acquire_time: take(spec, "spec", "acquireTime")?,
            renew_time: take(spec, "spec", "renewTime")?,
            lease_transitions: take(spec, "spec", "leaseTransitions")?,
        };
        let draft = Self { uid: text("uid")?, resource_version: text("resourceVersion")?, metadata, spec };
        draft.check_limits(name)?;
        Ok(draft)
    }

    fn check_limits(&self, name: &str) -> Result<(), Failure> {
        let limits = [
            // Candidates of this library refuse a record with a longer lease, and would wait for people.
            (
                "leaseDurationSeconds",
                self.spec.lease_duration_seconds,
                1..=LONGEST,
                "greater than 0, and at most a day",
            ),
            ("leaseTransitions", self.spec.lease_transitions, 0..=i32::MAX, "greater than or equal to 0"),
        ];
        for (field, number, allowed, rule) in limits {
            if number.is_some_and(|number| !allowed.contains(&number)) {
                return Err(Failure::invalid(
                    name,
                    &format!("spec.{field}"),
                    &format!("Invalid value: must be {rule}"),
                ));
            }
        }
        Ok(())
    }
}

/// Refuses an object of another kind. An object that does not say what it is counts as a Lease: Python's elector sends such.
pub(crate) fn check_kind(object: &Value) -> Result<(), Failure> {
    let says = |field: &str, right: &str| match &object[field] {
        Value::Null => true,
        said => said == right || said == "",
    };
    if object.is_object() && says("apiVersion", API_VERSION) && says("kind", KIND) {
        return Ok(());
    }
    Err(Failure::undecodable("the object", format_args!("it is no {KIND} of {API_VERSION}")))
}

/// Refuses what is no name of an object.
pub(crate) fn check_name(name: &str) -> Result<(), Failure> {
    if is_name(name) {
        return Ok(());
    }
    let why = "Invalid value: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
               '.', and must start and end with an alphanumeric character";
    Err(Failure::invalid(name, "metadata.name", why))
}

pub(crate) fn is_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(is_inner) && !part.starts_with('-') && !part.ends_with('-');
    name.len() <= 253 && name.split('.').all(is_part)
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// Reads a part of the metadata by its type, which bounds its levels. Like an API server, it drops what no owner has.
fn read_metadata(name: &str, field: &str, value: &Value, is_strict: bool) -> Result<Value, Failure> {
    let of_other_type = |error| Failure::undecodable(format_args!("metadata.{field}"), error);
    let invalid = |why: String| Err(Failure::invalid(name, &format!("metadata.{field}"), &why));
    if field == "ownerReferences" {
        let read = Vec::<OwnerReference>::deserialize(value).map_err(of_other_type)?;
        if let Some(why) = owner::flaw(&read) {
            return invalid(why.to_owned());
        }
        let owners = serde_json::to_value(read).map_err(of_other_type)?;
        if is_strict && owners != *value {
            return Err(Failure::undecodable("metadata.ownerReferences", "strict decoding error: unknown field"));
        }
        return Ok(owners);
    }
    let texts = BTreeMap::<&str, &str>::deserialize(value).map_err(of_other_type)?;
    if let Some(key) = texts.keys().find(|key| !is_qualified_name(key)) {
        return invalid(format!(
            "Invalid value: {key:?}: name part must consist of alphanumeric characters, '-', '_' or '.'"
        ));
    }
    let is_value = |text: &str| text.is_empty() || is_part_of_label(text);
    if let Some(text) = texts.values().find(|text| field == "labels" && !is_value(text)) {
        return invalid(format!(
            "Invalid value: {text:?}: a valid label must be an empty string or consist of at most 63 alphanumeric characters, '-', '_' or '.'"
        ));
    }
    Ok(value.clone())
}

/// Returns `true` for the name of a label or an annotation, which may have a domain before a slash.
fn is_qualified_name(name: &str) -> bool {
    let (domain, name) = name.split_once('/').map_or((None, name), |(domain, name)| (Some(domain), name));
    domain.is_none_or(|domain| is_name(&domain.to_ascii_lowercase())) && is_part_of_label(name)
}

fn is_part_of_label(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let bytes = text.as_bytes();
    bytes.len() <= 63 && is_end(bytes.first()) && is_end(bytes.last()) && bytes.iter().all(is_inner)
}

fn take<T: DeserializeOwned>(object: &Value, parent: &str, field: &str) -> Result<Option<T>, Failure> {
    let value = &object[field];
    Option::<T>::deserialize(value).map_err(|error| Failure::undecodable(format_args!("{parent}.{field}"), error))
}

fn refuse_unknown(object: &Value) -> Result<(), Failure> {
    let spec = [
        "acquireTime",
        "holderIdentity",
        "leaseDurationSeconds",
        "leaseTransitions",
        "preferredHolder",
        "renewTime",
        "strategy",
    ];
    let metadata = [METADATA.as_slice(), SERVERS.as_slice()].concat();
    let known: [(&str, &[&str]); 3] =
        [("", &["apiVersion", "kind", "metadata", "spec"]), ("/metadata", &metadata), ("/spec", &spec)];
    for (path, known) in known {
        let fields = object.pointer(path).and_then(Value::as_object);
        if let Some(field) = fields.and_then(|fields| fields.keys().find(|field| !known.contains(&field.as_str()))) {
            let field = format!("{}.{field}", path.trim_start_matches('/'));
            return Err(Failure::undecodable(field.trim_start_matches('.'), "strict decoding error: unknown field"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_label_may_have_a_domain() {
        for name in ["a", "app.kubernetes.io/name", "leaderelection/token", "A_b-c.d", "Example.org/a"] {
            assert!(is_qualified_name(name), "{name:?}");
        }
        let too_long = "a".repeat(64);
        for name in ["", "/a", "a/", "a b", "-a", "a_", "a/b/c", "exa_mple/a", too_long.as_str()] {
            assert!(!is_qualified_name(name), "{name:?}");
        }
    }

    #[test]
    fn a_name_is_a_subdomain() {
        let longest = "a".repeat(253);
        for name in ["a", "0", "web", "web-1.prod", longest.as_str()] {
            assert!(is_name(name), "{name:?}");
        }
        let too_long = "a".repeat(254);
        for name in ["", ".", "a..b", "-a", "a-", "a.-b", "Web", "a_b", "a b", too_long.as_str()] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
