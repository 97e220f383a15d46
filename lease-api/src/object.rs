//! The object of a Lease in the store: the record of the election, with a field for what only a Lease has.
//!
//! Candidates of this library write the record and keep the field. The `spec` in the field counts only beside the write ID
//! with which it was written; after a write of such a candidate, the record alone says what the Lease is.
//!
//! The token of the record never falls. A write of a Lease raises it whenever the Lease gets another holder, or the same
//! holder begins anew, and at least to the `leaseTransitions` that the write names.

use std::collections::BTreeMap;
use std::hash::Hasher as _;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use leaderelection::LeaderElectionRecord;
use leaderelection::implement::{Version, VersionedObject};
use leaderelection::lock::{IncompatibleRecord, MAX_LEADER_TRANSITIONS, RecordError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use siphasher::sip128::{Hasher128 as _, SipHasher13};
use uuid::{Builder, Uuid};

use crate::lease::{Draft, MicroTime, Spec, TOKEN};
use crate::status::{API_VERSION, KIND};

/// The field of the record.
const FIELD: &str = "lease";

/// The largest metadata, so that the record always has room.
pub(crate) const MOST_METADATA: usize = 32 * 1024;

/// The lease of a holder whose Lease has no duration: client-go's default.
const DEFAULT_LEASE: Duration = Duration::from_secs(15);

/// The lease of nobody, as in client-go.
const RELEASED_LEASE: Duration = Duration::from_secs(1);

/// The namespace and the name of a Lease.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// The part of an object that only a Lease has.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    /// The write ID of the write that wrote this.
    written: String,
    /// The version for clients that it took the place of, if there was a Lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replaced: Option<String>,
    uid: String,
    created: MicroTime,
    #[serde(default)]
    spec: Spec,
    /// The Lease was deleted by this write. The record stays, so that the next holder gets a larger token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
}

/// The field as it is written: what clients decide in the metadata can be large, and most requests do not ask for it.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    kept: &'a Kept,
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: &'a Map<String, Value>,
}

/// The object of a Lease, and its version in the store.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    place: Place,
    record: LeaderElectionRecord,
    kept: Option<Kept>,
    pub(crate) version: Version,
}

impl Object {
    /// Reads the object of a Lease, or of a record that has never been one.
    pub(crate) fn read(place: &Place, found: &VersionedObject) -> Result<Self, RecordError> {
        // A lease that is too long for other candidates is for them to refuse.
        let record = LeaderElectionRecord::from_json_of_any(&found.body, Duration::MAX)?;
        let kept = record.unknown.get(FIELD).and_then(|field| serde_json::from_str(field).ok());
        Ok(Self { place: place.clone(), record, kept, version: found.version.clone() })
    }

    /// Returns `true` if the last write is the one with this ID.
    pub(crate) fn is_written_by(&self, write_id: &str) -> bool {
        self.record.write_id.as_deref() == Some(write_id)
    }

    /// Returns `true` if the write with this ID came before the last one: that of a Lease names what it replaced, and that of a
    /// candidate of this library keeps the Lease. Where two places show different writes, one of them may be a half.
    pub(crate) fn is_behind(&self, write_id: &str) -> bool {
        let kept = self.kept.as_ref().filter(|_| !self.is_written_by(self.version.as_str()));
        kept.is_some_and(|kept| kept.written == write_id || kept.replaced.as_deref() == Some(write_id))
    }

    /// The part that only a Lease has, unless a candidate of this library has written since.
    fn current(&self) -> Option<&Kept> {
        self.kept.as_ref().filter(|kept| self.is_written_by(&kept.written))
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.current().is_some_and(|kept| kept.deleted)
    }

    /// The version for clients. It never repeats, also after a deletion: every write has an ID of its own.
    pub(crate) fn resource_version(&self) -> &str {
        self.record.write_id.as_deref().unwrap_or(self.version.as_str())
    }

    pub(crate) fn uid(&self) -> String {
        match &self.kept {
            Some(kept) if !kept.deleted => kept.uid.clone(),
            before => derived(&self.place, before.as_ref().map(|kept| &*kept.uid)),
        }
    }

    /// The time at which the Lease was created; that of the term, if no client has created it.
    pub(crate) fn created(&self) -> Option<DateTime<Utc>> {
        let kept = self.kept.as_ref().filter(|kept| !kept.deleted);
        kept.map(|kept| kept.created.0).or(self.record.acquire_time)
    }

    pub(crate) fn holder(&self) -> &str {
        &self.record.holder_identity
    }

    pub(crate) fn token(&self) -> u64 {
        self.record.leader_transitions
    }

    pub(crate) fn lease_duration(&self) -> Duration {
        self.record.lease_duration
    }

    /// Returns `true` if a candidate of this library has written last, and holds the lease.
    pub(crate) fn is_held_by_candidate_of_library(&self) -> bool {
        self.current().is_none() && !self.record.is_released()
    }

    /// Why no client may write in the place of this: whoever leads on other parts, or through a session, would not miss the write
    /// (rule M8).
    pub(crate) fn bar(&self) -> Option<String> {
        let session = |session: &String| {
            let holder = self.holder();
            format!(
                "{holder} holds it through the session {session:?}, which has no lease to wait for; elect by another Lease"
            )
        };
        let strangers = IncompatibleRecord::of(&self.record, None).map(|strangers| strangers.to_string());
        strangers.or_else(|| self.record.session.as_ref().map(session))
    }

    pub(crate) fn spec(&self) -> Spec {
        self.current().map_or_else(|| spec_of(&self.record), |kept| kept.spec.clone())
    }

    /// The part of the metadata that clients decide.
    pub(crate) fn metadata(&self) -> Map<String, Value> {
        self.metadata_as().unwrap_or_default()
    }

    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        #[derive(Deserialize)]
        struct Labels {
            labels: BTreeMap<String, String>,
        }
        self.metadata_as().map(|Labels { labels }| labels).unwrap_or_default()
    }

    fn metadata_as<T: DeserializeOwned>(&self) -> Option<T> {
        #[derive(Deserialize)]
        struct Metadata<T> {
            metadata: T,
        }
        let field = self.kept.as_ref().and_then(|_| self.record.unknown.get(FIELD))?;
        serde_json::from_str(field).ok().map(|Metadata { metadata }| metadata)
    }

    /// Returns `true` if the write of this Lease would change nothing. Where two places show different writes, it would.
    pub(crate) fn is(&self, draft: &Draft) -> bool {
        let is_write = !self.is_written_by(self.version.as_str());
        is_write && self.spec() == draft.spec && self.metadata() == draft.metadata
    }

    /// Returns `true` if the last write was surely this one: it took the place of the version that is named, or of nothing, and
    /// made this Lease of it. People create the same twice, and no two electors take a lease under one name at one time.
    pub(crate) fn is_of(&self, draft: &Draft) -> bool {
        let is_told = draft.resource_version.is_some() || draft.spec.acquire_time.is_some();
        is_told && self.current().is_some_and(|kept| kept.replaced == draft.resource_version) && self.is(draft)
    }

    /// The Lease for clients.
    pub(crate) fn lease(&self) -> Value {
        let mut metadata = self.metadata();
        let token = self.token().to_string();
        match metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            Some(annotations) => drop(annotations.insert(TOKEN.to_owned(), token.into())),
            None => drop(metadata.insert("annotations".to_owned(), json!({TOKEN: token}))),
        }
        metadata.insert("name".to_owned(), self.place.name.clone().into());
        metadata.insert("namespace".to_owned(), self.place.namespace.clone().into());
        metadata.insert("uid".to_owned(), self.uid().into());
        metadata.insert("resourceVersion".to_owned(), self.resource_version().into());
        if let Some(created) = self.created() {
            let created = created.to_rfc3339_opts(SecondsFormat::Secs, true);
            metadata.insert("creationTimestamp".to_owned(), created.into());
        }
        json!({"kind": KIND, "apiVersion": API_VERSION, "metadata": metadata, "spec": self.spec()})
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// The object that a client wants to have, in the place of what is there before, a deleted Lease included. It is shown as if
    /// it were written: clients never see a version of the store.
    pub(crate) fn wanted(place: &Place, before: Option<&Self>, draft: &Draft, now: DateTime<Utc>) -> Self {
        let replaced = before.filter(|object| !object.is_deleted());
        let record = record_of(&draft.spec, before.map(|object| &object.record));
        let kept = Kept {
            written: Uuid::new_v4().simple().to_string(),
            replaced: replaced.map(|object| object.resource_version().to_owned()),
            uid: replaced.map_or_else(|| Uuid::new_v4().to_string(), Self::uid),
            created: replaced.and_then(|object| object.kept.as_ref()).map_or(MicroTime(now), |kept| kept.created),
            spec: draft.spec.clone(),
            deleted: false,
        };
        Self::with(place, record, kept, &draft.metadata)
    }

    /// The object by which this Lease is deleted.
    pub(crate) fn deletion(&self, now: DateTime<Utc>) -> Self {
        let record = record_of(&Spec::default(), Some(&self.record));
        let kept = Kept {
            written: Uuid::new_v4().simple().to_string(),
            replaced: Some(self.resource_version().to_owned()),
            uid: self.uid(),
            created: MicroTime(now),
            spec: Spec::default(),
            deleted: true,
        };
        Self::with(&self.place, record, kept, &Map::new())
    }

    fn with(place: &Place, mut record: LeaderElectionRecord, kept: Kept, metadata: &Map<String, Value>) -> Self {
        record.write_id = Some(kept.written.clone());
        record.unknown.set(FIELD, &Whole { kept: &kept, metadata });
        Self { place: place.clone(), record, kept: Some(kept), version: Version::new("") }
    }

    /// Returns `true` if nobody could read this: its term would have a token beyond the largest one.
    pub(crate) fn is_beyond_last_token(&self) -> bool {
        self.record.leader_transitions > MAX_LEADER_TRANSITIONS
    }

    pub(crate) fn body(&self) -> Bytes {
        self.record.to_json().into()
    }
}

/// The record of a Lease that takes the place of another record.
fn record_of(spec: &Spec, before: Option<&LeaderElectionRecord>) -> LeaderElectionRecord {
    let mut record = before.cloned().unwrap_or_else(|| LeaderElectionRecord::new("", RELEASED_LEASE));
    let holder = spec.holder();
    let acquire_time = spec.acquire_time.map(|time| time.0);
    let is_held = !holder.is_empty();
    let begins = before
        .is_some_and(|before| is_held && (holder != before.holder_identity || acquire_time != before.acquire_time));
    let asked = spec.lease_transitions.and_then(|number| u64::try_from(number).ok()).unwrap_or_default();
    record.leader_transitions = record.leader_transitions.saturating_add(u64::from(begins)).max(asked);
    if begins {
        // These belong to the term that ends.
        (record.preferred_holder, record.peer, record.rank) = (None, None, None);
    }
    let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let default = if is_held { DEFAULT_LEASE } else { RELEASED_LEASE };
    record.holder_identity = holder.to_owned();
    record.lease_duration = seconds.map_or(default, Duration::from_secs);
    record.acquire_time = acquire_time;
    record.renew_time = spec.renew_time.map(|time| time.0);
    record
}

/// The `spec` of a record that a candidate of this library has written.
fn spec_of(record: &LeaderElectionRecord) -> Spec {
    let part = u64::from(record.lease_duration.subsec_nanos() > 0);
    let seconds = record.lease_duration.as_secs().saturating_add(part);
    Spec {
        holder_identity: Some(record.holder_identity.clone()),
        lease_duration_seconds: record.session.is_none().then(|| i32::try_from(seconds).unwrap_or(i32::MAX).max(1)),
        acquire_time: record.acquire_time.map(MicroTime),
        renew_time: record.renew_time.map(MicroTime),
        lease_transitions: Some(i32::try_from(record.leader_transitions).unwrap_or(i32::MAX)),
    }
}

/// The uid of a Lease to which no client has written: the same for every server that looks.
fn derived(place: &Place, before: Option<&str>) -> String {
    let mut hasher = SipHasher13::new();
    for part in [place.namespace.as_bytes(), b"/", place.name.as_bytes(), before.unwrap_or_default().as_bytes()] {
        hasher.write(part);
    }
    Builder::from_random_bytes(hasher.finish128().as_u128().to_be_bytes()).into_uuid().to_string()
}
