//! A Lease and the record in it.
//!
//! The fields of the Lease are those of client-go. They have no room for everything that a record has: an annotation
//! has the whole record. The record in the annotation counts only if the fields are exactly those that were written
//! with it. client-go keeps the annotation when it writes the fields, and its write has no write ID.
//!
//! There is one exception. A candidate of client-go that was frozen beyond its lease releases the Lease when it
//! continues, whoever holds the Lease by then. Such a release keeps the `leaseTransitions` that it finds. Every holder
//! of client-go has raised them before, so a release with the token of the annotation releases the lease of somebody
//! else, who still leads.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use leaderelection::LeaderElectionRecord;
use leaderelection::implement::{ListedObject, ListedPage, PageToken, Version};
use serde_json::{Map, Value, json};

use crate::server::LEASES;

/// The annotation with the whole record.
const RECORD: &str = "leaderelection/record";

/// The annotation with the `renewTime` that was written with the record.
const RENEW_TIME: &str = "leaderelection/renew-time";

/// The largest `leaseTransitions` of a Lease.
const MOST_TRANSITIONS: u64 = i32::MAX.unsigned_abs() as u64;

/// The lease of a holder whose Lease has no duration: client-go's default.
const DEFAULT_LEASE_SECONDS: u64 = 15;

/// A Lease as the API server has answered it.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    object: Value,
    version: Version,
}

impl Lease {
    /// Returns the Lease in an answer; `None` if the answer has no version.
    pub(crate) fn of_answer(object: Value) -> Option<Self> {
        let version = version(&object)?;
        Some(Self { object, version })
    }

    pub(crate) fn version(&self) -> &Version {
        &self.version
    }

    /// The body of the record in this Lease, which may be the record of a candidate of client-go.
    ///
    /// # Errors
    ///
    /// A sentence about a Lease whose holder Kubernetes itself chooses.
    pub(crate) fn record(&self) -> Result<Vec<u8>, String> {
        let spec = &self.object["spec"];
        if spec["strategy"].as_str().is_some_and(|strategy| !strategy.is_empty()) {
            return Err(format!(
                "it has the strategy {}, so Kubernetes itself chooses its holder; choose another Lease",
                spec["strategy"]
            ));
        }
        let annotated = self.annotated();
        if let Some(record) = &annotated
            && (self.annotation(RENEW_TIME).is_some_and(|time| fields(record, time) == significant(spec))
                || is_late_release(spec, record))
        {
            return Ok(record.to_json());
        }
        let body = of_fields(spec, annotated.as_ref()).to_string().into_bytes();
        Ok(match (LeaderElectionRecord::from_json(&body, std::time::Duration::MAX), annotated) {
            (Ok(mut record), Some(annotated)) => {
                record.unknown = annotated.unknown;
                record.failbacks = annotated.failbacks;
                record.to_json()
            }
            // The elector's own reader says what is wrong with it.
            _ => body,
        })
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.object["metadata"]["annotations"][name].as_str()
    }

    fn annotated(&self) -> Option<LeaderElectionRecord> {
        let record = self.annotation(RECORD)?;
        LeaderElectionRecord::from_json(record.as_bytes(), std::time::Duration::MAX).ok()
    }
}

/// Returns `true` if the fields are those of a release by a candidate of client-go that does not hold the Lease any more. A
/// person who releases the Lease empties its holder only.
fn is_late_release(spec: &Value, annotated: &LeaderElectionRecord) -> bool {
    let is_release = spec["holderIdentity"].as_str().unwrap_or_default().is_empty()
        && spec["leaseDurationSeconds"] == 1
        && spec["renewTime"].is_string()
        && spec["acquireTime"] == spec["renewTime"];
    let transitions = annotated.leader_transitions.min(MOST_TRANSITIONS);
    is_release && !annotated.is_released() && spec["leaseTransitions"].as_u64() == Some(transitions)
}

/// The JSON of a record that somebody else has written into the fields.
fn of_fields(spec: &Value, annotated: Option<&LeaderElectionRecord>) -> Value {
    let holder = spec["holderIdentity"].as_str().unwrap_or_default();
    let duration = match &spec["leaseDurationSeconds"] {
        // A lease without a holder blocks nobody, whatever its duration.
        Value::Null if holder.is_empty() => json!(1),
        // The API allows this. A person who writes a holder means that nobody else leads, and would otherwise lock all
        // candidates out.
        Value::Null => json!(DEFAULT_LEASE_SECONDS),
        duration => duration.clone(),
    };
    let transitions = match &spec["leaseTransitions"] {
        Value::Null => json!(0),
        // The field is at its largest, so that only the annotation has the token.
        most if most.as_u64() == Some(MOST_TRANSITIONS) => {
            json!(annotated.map_or(0, |record| record.leader_transitions).max(MOST_TRANSITIONS))
        }
        transitions => transitions.clone(),
    };
    json!({
        "holderIdentity": holder, "leaseDurationSeconds": duration, "acquireTime": spec["acquireTime"],
        "renewTime": spec["renewTime"], "leaderTransitions": transitions,
    })
}

/// The fields of a record in a Lease.
fn fields(record: &LeaderElectionRecord, renew_time: &str) -> Map<String, Value> {
    let seconds = record.lease_duration.as_secs().saturating_add(u64::from(record.lease_duration.subsec_nanos() > 0));
    significant(&json!({
        "holderIdentity": record.holder_identity, "leaseDurationSeconds": seconds.clamp(1, MOST_TRANSITIONS),
        "acquireTime": record.acquire_time.map(micro_time), "renewTime": renew_time,
        "leaseTransitions": record.leader_transitions.min(MOST_TRANSITIONS),
    }))
}

/// The fields on which candidates of client-go decide, without those that are missing.
fn significant(spec: &Value) -> Map<String, Value> {
    let names = ["holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions"];
    let present = names.into_iter().filter(|name| !spec[name].is_null());
    present.map(|name| (name.to_owned(), spec[name].clone())).collect()
}

/// Spells a time as Kubernetes does.
fn micro_time(time: DateTime<Utc>) -> String {
    // In a leap second, chrono has more than a second's nanoseconds, which Go cannot read.
    let time = DateTime::from_timestamp_micros(time.timestamp_micros()).unwrap_or(time);
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// A record that is to be written.
#[derive(Debug)]
pub(crate) struct LeaseBody {
    record: LeaderElectionRecord,
    body: String,
}

impl LeaseBody {
    /// Reads a record.
    ///
    /// # Errors
    ///
    /// A sentence about what a Lease cannot hold.
    pub(crate) fn of_record(body: &[u8]) -> Result<Self, String> {
        let record =
            LeaderElectionRecord::from_json(body, std::time::Duration::MAX).map_err(|error| error.to_string())?;
        let body = str::from_utf8(body).map_err(|error| error.to_string())?.to_owned();
        Ok(Self { record, body })
    }

    /// The Lease to create.
    pub(crate) fn created(&self, namespace: &str, name: &str) -> Value {
        self.written(json!({"name": name, "namespace": namespace}), Value::Null)
    }

    /// The Lease to write instead of another, with everything that others have written into that.
    pub(crate) fn replacing(&self, lease: &Lease) -> Value {
        let mut metadata = lease.object["metadata"].clone();
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("managedFields");
        }
        self.written(metadata, lease.object["spec"].clone())
    }

    fn written(&self, mut metadata: Value, replaced: Value) -> Value {
        let renew_time = self.renew_time(&replaced);
        let mut spec = if let Value::Object(spec) = replaced { spec } else { Map::new() };
        spec.retain(|name, _| name != "acquireTime");
        spec.extend(fields(&self.record, &renew_time));
        if !metadata["annotations"].is_object() {
            metadata["annotations"] = json!({});
        }
        metadata["annotations"][RECORD] = self.body.clone().into();
        metadata["annotations"][RENEW_TIME] = renew_time.into();
        json!({"apiVersion": LEASES, "kind": "Lease", "metadata": metadata, "spec": spec})
    }

    /// The `renewTime`, which differs from the one before by the second if nothing else differs to client-go.
    fn renew_time(&self, replaced: &Value) -> String {
        let wanted = self.record.renew_time.unwrap_or_default();
        let before = replaced["renewTime"].as_str().unwrap_or_default();
        let is_renewal = fields(&self.record, before) == significant(replaced);
        let last = DateTime::parse_from_rfc3339(before).map(|time| time.timestamp());
        let is_same = is_renewal && last.is_ok_and(|last| last == wanted.timestamp());
        micro_time(wanted.checked_add_signed(TimeDelta::seconds(is_same.into())).unwrap_or(wanted))
    }
}

/// The page of a listing in an answer, with the Leases whose names start with `prefix`; `None` if the answer is no listing.
pub(crate) fn page(list: &Value, prefix: &str) -> Option<ListedPage> {
    let names = list["items"].as_array()?.iter().filter_map(|lease| Some((lease["metadata"]["name"].as_str()?, lease)));
    let wanted = names.filter(|(name, _)| name.starts_with(prefix));
    let leases = wanted.map(|(name, lease)| ListedObject::new(name, version(lease))).collect();
    let next = list["metadata"]["continue"].as_str().filter(|token| !token.is_empty());
    Some(ListedPage::new(leases, next.map(PageToken::new)))
}

/// The version of a Lease: its `uid` and its `resourceVersion`, without which an update could create it anew.
fn version(object: &Value) -> Option<Version> {
    let part = |name: &str| object["metadata"][name].as_str().filter(|part| !part.is_empty());
    Some(Version::new(format!("{}/{}", part("uid")?, part("resourceVersion")?)))
}

/// The preconditions of a deletion.
pub(crate) fn preconditions(version: &Version) -> Value {
    let (uid, resource_version) = version.as_str().split_once('/').unwrap_or((version.as_str(), ""));
    json!({"uid": uid, "resourceVersion": resource_version})
}

/// Refuses what is no name of a Lease, and what a URL would change.
pub(crate) fn check_name(name: &str) -> Result<(), &'static str> {
    let is_part = |part: &str| {
        let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !part.is_empty() && part.bytes().all(is_inner) && !part.starts_with('-') && !part.ends_with('-')
    };
    if name.len() <= 253 && name.split('.').all(is_part) {
        return Ok(());
    }
    Err(
        "not the name of a Lease, which has only lower-case letters, digits, - and . and begins and ends with a letter or \
         a digit; use one such as scheduler",
    )
}

/// Refuses what is no label, and what a URL would change.
pub(crate) fn check_label(key: &str, value: &str) -> Result<(), &'static str> {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let name = key.rsplit('/').next().unwrap_or_default();
    let is_key = !name.is_empty() && name.len() <= 63 && key.bytes().all(|byte| is_inner(byte) || byte == b'/');
    if is_key && value.len() <= 63 && value.bytes().all(is_inner) {
        return Ok(());
    }
    Err("not a label, which is KEY=VALUE of letters, digits, -, _ and ., at most 63 characters each; use one such as \
         team=payments")
}

#[cfg(test)]
mod tests;
