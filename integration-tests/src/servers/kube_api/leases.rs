//! The Leases of an API server, and the rules under which they change.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::NAMESPACE;
use super::status::Failure;

/// The parameters of a listing.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Listing {
    limit: Option<usize>,
    #[serde(rename = "continue")]
    token: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Leases {
    leases: BTreeMap<String, Value>,
    revision: u64,
    created: u64,
}

impl Leases {
    pub(super) fn read(&self, namespace: &str, name: &str) -> Result<Value, Failure> {
        self.leases.get(name).filter(|_| namespace == NAMESPACE).cloned().ok_or_else(|| Failure::not_found(name))
    }

    pub(super) fn list(&self, namespace: &str, listing: &Listing) -> Result<Value, Failure> {
        let first = listing.token.clone().unwrap_or_default();
        let mut rest =
            self.leases.iter().filter(|(name, _)| namespace == NAMESPACE && **name >= first).map(|(_, lease)| lease);
        let items: Vec<_> = rest.by_ref().take(listing.limit.unwrap_or(usize::MAX)).cloned().collect();
        let token = rest.next().map_or(Value::Null, |next| next["metadata"]["name"].clone());
        let metadata = json!({"resourceVersion": self.revision.to_string(), "continue": token});
        Ok(json!({"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "metadata": metadata, "items": items}))
    }

    pub(super) fn create(&mut self, namespace: &str, lease: Value) -> Result<Value, Failure> {
        let name = lease["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if lease["metadata"]["resourceVersion"].as_str().is_some_and(|version| !version.is_empty()) {
            return Err(Failure::internal("resourceVersion should not be set on objects to be created"));
        }
        if self.leases.contains_key(&name) && namespace == NAMESPACE {
            validate(namespace, &name, lease)?;
            return Err(Failure::exists(&name));
        }
        self.begin(namespace, &name, lease)
    }

    /// Replaces a Lease, or creates it: the API server allows that for Leases, whatever `resourceVersion` says. Returns
    /// `true` if the Lease was created.
    pub(super) fn update(&mut self, namespace: &str, name: &str, lease: Value) -> Result<(Value, bool), Failure> {
        if lease["metadata"]["name"] != name {
            return Err(Failure::bad_request("the name of the object does not match the name on the URL"));
        }
        let present = self.leases.get(name).filter(|_| namespace == NAMESPACE);
        // This comes first, and of a missing Lease the uid is empty.
        let known = present.map_or(&Value::Null, |present| &present["metadata"]["uid"]).as_str().unwrap_or_default();
        if let Some(uid) = lease["metadata"]["uid"].as_str().filter(|uid| !uid.is_empty() && *uid != known) {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/leases/{namespace}/{name}, ResourceVersion: 0, \
                 AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {known}"
            );
            return Err(Failure::conflict(name, &why));
        }
        let Some(present) = present else { return self.begin(namespace, name, lease).map(|lease| (lease, true)) };
        let version = lease["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if version.is_empty() {
            return Err(Failure::without_version(name));
        }
        if present["metadata"]["resourceVersion"] != version {
            let why = "the object has been modified; please apply your changes to the latest version and try again";
            return Err(Failure::conflict(name, why));
        }
        let mut changed = validate(namespace, name, lease)?;
        for field in ["uid", "creationTimestamp", "resourceVersion", "managedFields"] {
            changed["metadata"][field] = present["metadata"][field].clone();
        }
        // An update that changes nothing is not written.
        if changed != *present {
            changed["metadata"]["resourceVersion"] = self.next_revision();
            self.leases.insert(name.to_owned(), changed.clone());
        }
        Ok((changed, false))
    }

    pub(super) fn delete(&mut self, namespace: &str, name: &str, options: &Value) -> Result<Value, Failure> {
        let present = self.read(namespace, name)?;
        for field in ["uid", "resourceVersion"] {
            let wanted = &options["preconditions"][field];
            if !wanted.is_null() && *wanted != present["metadata"][field] {
                let why = format!("the {field} in the precondition ({wanted}) does not match");
                return Err(Failure::unmet(name, &why));
            }
        }
        self.leases.remove(name);
        self.revision += 1;
        Ok(json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}))
    }

    /// Stores a new Lease, with a uid that no other has had.
    fn begin(&mut self, namespace: &str, name: &str, lease: Value) -> Result<Value, Failure> {
        let mut lease = validate(namespace, name, lease)?;
        if namespace != NAMESPACE {
            return Err(Failure::no_namespace(namespace));
        }
        self.created += 1;
        lease["metadata"]["uid"] = format!("0198c0de-0000-4000-8000-{:012x}", self.created).into();
        lease["metadata"]["resourceVersion"] = self.next_revision();
        lease["metadata"]["creationTimestamp"] = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true).into();
        lease["metadata"]["managedFields"] = json!([{"manager": "tests", "operation": "Update"}]);
        self.leases.insert(name.to_owned(), lease.clone());
        Ok(lease)
    }

    fn next_revision(&mut self) -> Value {
        self.revision += 1;
        self.revision.to_string().into()
    }
}

/// Decodes and validates a Lease, and drops what a Lease does not have.
fn validate(namespace: &str, name: &str, mut lease: Value) -> Result<Value, Failure> {
    if (lease["apiVersion"].as_str(), lease["kind"].as_str()) != (Some("coordination.k8s.io/v1"), Some("Lease")) {
        return Err(Failure::bad_request("the object provided is unrecognized"));
    }
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    if name.is_empty() || name.len() > 253 || !name.bytes().all(is_name) {
        return Err(Failure::invalid(name, "metadata.name", "a lowercase RFC 1123 subdomain must consist of …"));
    }
    let mut metadata = Map::new();
    for field in ["annotations", "finalizers", "labels", "name", "ownerReferences"] {
        if let Some(value) = lease["metadata"].get_mut(field).filter(|value| !value.is_null()) {
            metadata.insert(field.to_owned(), value.take());
        }
    }
    metadata.insert("namespace".to_owned(), namespace.into());
    let spec = spec(name, &lease["spec"])?;
    Ok(json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}))
}

/// The fields of a Lease. `strategy` and `preferredHolder` are dropped, because their feature gate is off.
fn spec(name: &str, spec: &Value) -> Result<Value, Failure> {
    let mut valid = Map::new();
    let undecodable = |field: &str| Failure::bad_request(&format!("cannot decode Lease.spec.{field}"));
    for field in ["holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions"] {
        let value = &spec[field];
        if value.is_null() {
            continue;
        }
        let value = match field {
            "holderIdentity" => value.as_str().map(Value::from),
            "acquireTime" | "renewTime" => value.as_str().and_then(micro_time).map(Value::from),
            _ => value.as_i64().and_then(|number| i32::try_from(number).ok()).map(Value::from),
        };
        valid.insert(field.to_owned(), value.ok_or_else(|| undecodable(field))?);
    }
    let number = |field: &str| valid.get(field).and_then(Value::as_i64);
    if number("leaseDurationSeconds").is_some_and(|seconds| seconds <= 0) {
        return Err(Failure::invalid(name, "spec.leaseDurationSeconds", "Invalid value: must be greater than 0"));
    }
    if number("leaseTransitions").is_some_and(|transitions| transitions < 0) {
        return Err(Failure::invalid(
            name,
            "spec.leaseTransitions",
            "Invalid value: must be greater than or equal to 0",
        ));
    }
    Ok(Value::Object(valid))
}

/// Spells a time as an API server does. A time that is sent has six digits behind the seconds, not fewer and not more.
fn micro_time(time: &str) -> Option<String> {
    let digits = time.split_once('.')?.1.find(|c: char| !c.is_ascii_digit());
    let parsed = DateTime::parse_from_rfc3339(time).ok().filter(|_| digits == Some(6))?;
    Some(parsed.to_utc().to_rfc3339_opts(SecondsFormat::Micros, true))
}
