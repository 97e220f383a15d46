//! The objects of one kind, and the rules under which they change.

use std::collections::BTreeMap;

use chrono::{SecondsFormat, Utc};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::changes::{Change, Selector};
use super::status::Failure;

/// A namespace that exists.
pub const NAMESPACE: &str = "default";

/// A kind of objects of the core API, with the fields that the tests need.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) plural: &'static str,
    fields: &'static [&'static str],
}

pub(super) const CONFIG_MAPS: Kind = Kind { name: "ConfigMap", plural: "configmaps", fields: &["data", "binaryData"] };
pub(super) const EVENTS: Kind = Kind {
    name: "Event",
    plural: "events",
    fields: &["involvedObject", "reason", "message", "type", "source", "firstTimestamp", "lastTimestamp", "count"],
};
pub(super) const PODS: Kind = Kind { name: "Pod", plural: "pods", fields: &["spec", "status"] };

/// The description of the core API, for which a client asks before its first request.
pub(super) fn discovery(kinds: [Kind; 3]) -> Value {
    let verbs = ["create", "delete", "get", "list", "patch", "update", "watch"];
    let resources =
        kinds.map(|kind| json!({"name": kind.plural, "namespaced": true, "kind": kind.name, "verbs": verbs}));
    json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": resources})
}

/// The parameters of a listing or of a watch.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listing {
    limit: Option<usize>,
    #[serde(rename = "continue")]
    token: Option<String>,
    #[serde(default)]
    pub(super) watch: bool,
    pub(super) resource_version: Option<String>,
    #[serde(default)]
    pub(super) label_selector: Selector,
}

#[derive(Debug)]
pub(super) struct Objects {
    kind: Kind,
    objects: BTreeMap<String, Value>,
    changes: Vec<Change>,
    created: u64,
}

impl Objects {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, objects: BTreeMap::new(), changes: Vec::new(), created: 0 }
    }

    pub(super) fn plural(&self) -> &'static str {
        self.kind.plural
    }

    pub(super) fn all(&self) -> Vec<Value> {
        self.objects.values().cloned().collect()
    }

    pub(super) fn read(&self, namespace: &str, name: &str) -> Result<Value, Failure> {
        let present = self.objects.get(name).filter(|_| namespace == NAMESPACE);
        present.cloned().ok_or_else(|| Failure::not_found(self.kind.plural, name))
    }

    pub(super) fn list(&self, namespace: &str, listing: &Listing) -> Value {
        let first = listing.token.clone().unwrap_or_default();
        let is_listed = |name: &str, object: &Value| {
            namespace == NAMESPACE && *name >= *first && listing.label_selector.matches(object)
        };
        let mut rest = self.objects.iter().filter(|(name, object)| is_listed(name, object)).map(|(_, object)| object);
        let items: Vec<_> = rest.by_ref().take(listing.limit.unwrap_or(usize::MAX)).cloned().collect();
        let token = rest.next().map_or(Value::Null, |next| next["metadata"]["name"].clone());
        let metadata = json!({"resourceVersion": self.revision().to_string(), "continue": token});
        json!({"kind": format!("{}List", self.kind.name), "apiVersion": "v1", "metadata": metadata, "items": items})
    }

    pub(super) fn create(&mut self, namespace: &str, object: Value) -> Result<Value, Failure> {
        let text = |field| object["metadata"][field].as_str().map(str::to_owned);
        let generated = || format!("{}{:05x}", text("generateName").unwrap_or_default(), self.created);
        let name = text("name").unwrap_or_else(generated);
        if object["metadata"]["resourceVersion"].as_str().is_some_and(|version| !version.is_empty()) {
            return Err(Failure::internal("resourceVersion should not be set on objects to be created"));
        }
        if self.objects.contains_key(&name) && namespace == NAMESPACE {
            return Err(Failure::exists(self.kind.plural, &name));
        }
        self.begin(namespace, &name, object)
    }

    /// Replaces an object.
    pub(super) fn update(&mut self, namespace: &str, name: &str, object: Value) -> Result<Value, Failure> {
        let present = self.read(namespace, name)?;
        let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if !version.is_empty() && present["metadata"]["resourceVersion"] != version {
            return Err(Failure::conflict(self.kind.plural, name));
        }
        let mut changed = self.validate(namespace, name, object)?;
        for field in ["uid", "creationTimestamp", "resourceVersion", "managedFields"] {
            changed["metadata"][field] = present["metadata"][field].clone();
        }
        // An update that changes nothing is not written.
        if changed != present {
            changed["metadata"]["resourceVersion"] = self.next_revision();
            self.store(name, changed.clone());
        }
        Ok(changed)
    }

    pub(super) fn delete(&mut self, namespace: &str, name: &str) -> Result<Value, Failure> {
        let mut present = self.read(namespace, name)?;
        self.objects.remove(name);
        present["metadata"]["resourceVersion"] = self.next_revision();
        self.changes.push(Change { before: Some(present), after: None });
        Ok(json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}))
    }

    /// The number of changes so far. The revision of an object is the number of the change that made it.
    pub(super) fn revision(&self) -> usize {
        self.changes.len()
    }

    /// Every state of one object, oldest first.
    pub(super) fn history(&self, name: &str) -> Vec<Value> {
        let states = self.changes.iter().filter_map(|change| change.after.as_ref());
        states.filter(|state| state["metadata"]["name"] == name).cloned().collect()
    }

    pub(super) fn change_after(&self, revision: usize) -> Option<&Change> {
        self.changes.get(revision)
    }

    /// Stores a new object, with a uid that no other has had.
    fn begin(&mut self, namespace: &str, name: &str, object: Value) -> Result<Value, Failure> {
        let mut object = self.validate(namespace, name, object)?;
        self.created += 1;
        object["metadata"]["uid"] = format!("0198c0de-0000-4000-8000-{:012x}", self.created).into();
        object["metadata"]["resourceVersion"] = self.next_revision();
        object["metadata"]["creationTimestamp"] = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true).into();
        object["metadata"]["managedFields"] = json!([{"manager": "tests", "operation": "Update"}]);
        self.store(name, object.clone());
        Ok(object)
    }

    fn store(&mut self, name: &str, object: Value) {
        let before = self.objects.insert(name.to_owned(), object.clone());
        self.changes.push(Change { before, after: Some(object) });
    }

    fn next_revision(&self) -> Value {
        (self.revision() + 1).to_string().into()
    }

    /// Changes the fields that a merge patch names.
    pub(super) fn patch(&mut self, namespace: &str, name: &str, patch: Value) -> Result<Value, Failure> {
        let mut present = self.read(namespace, name)?;
        merge(&mut present, patch);
        self.update(namespace, name, present)
    }

    /// Validates an object, and drops what its kind does not have.
    fn validate(&self, namespace: &str, name: &str, mut object: Value) -> Result<Value, Failure> {
        if (object["apiVersion"].as_str(), object["kind"].as_str()) != (Some("v1"), Some(self.kind.name)) {
            return Err(Failure::bad_request("the object provided is unrecognized"));
        }
        let mut metadata = Map::new();
        for field in ["annotations", "finalizers", "labels", "name", "ownerReferences"] {
            if let Some(value) = object["metadata"].get_mut(field).filter(|value| !value.is_null()) {
                metadata.insert(field.to_owned(), value.take());
            }
        }
        metadata.insert("name".to_owned(), name.into());
        metadata.insert("namespace".to_owned(), namespace.into());
        let mut valid = json!({"apiVersion": "v1", "kind": self.kind.name, "metadata": metadata});
        for field in self.kind.fields {
            if !object[field].is_null() {
                valid[field] = object[field].take();
            }
        }
        Ok(valid)
    }
}

/// Merges a patch into a value, as RFC 7386 says.
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else { return *target = patch };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in patch {
        match target.as_object_mut() {
            Some(fields) if value.is_null() => drop(fields.remove(&name)),
            _ => merge(&mut target[name], value),
        }
    }
}
