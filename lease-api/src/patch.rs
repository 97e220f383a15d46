//! The four kinds of patches, and what they may cost.
//!
//! A body is at most 64 KiB, but one operation of a JSON patch copies whatever is there, so the cost of each is known before it
//! is applied. Nothing here, and nothing behind it, becomes deeper than [`DEEPEST`]: a `Value` is cloned, compared and dropped
//! by recursion.

use std::collections::{HashMap, HashSet};

use json_patch::{PatchOperation, merge};
use serde_json::{Map, Value, json};

use crate::body::{DEEPEST, LARGEST, object};
use crate::status::{API_VERSION, Failure, KIND};

/// The most operations of a JSON patch. An API server, whose bodies may have 3 MiB, allows 10,000.
const MOST_OPERATIONS: usize = 1000;

/// The most bytes that all operations of a JSON patch copy and move: the largest body, as in an API server.
const MOST_COPIED: usize = LARGEST;

/// The kind of a patch, by the type of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchKind {
    pub(crate) fn of(content: &str) -> Result<Self, Failure> {
        match content {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" => Ok(Self::Strategic),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            other => Err(Failure::media_type(other)),
        }
    }
}

/// The change that a body asks for.
#[derive(Debug)]
pub(crate) enum Patch {
    Operations(Vec<PatchOperation>),
    Merged(PatchKind, Value),
}

impl Patch {
    pub(crate) fn read(kind: PatchKind, body: &[u8]) -> Result<Self, Failure> {
        if kind == PatchKind::Json {
            let operations: Vec<PatchOperation> =
                serde_json::from_slice(body).map_err(|error| Failure::undecodable("the body", error))?;
            let (count, most) = (operations.len(), MOST_OPERATIONS);
            return if count > most {
                Err(Failure::too_large(format!(
                    "the allowed maximum operations in a JSON patch is {most}, got {count}"
                )))
            } else {
                Ok(Self::Operations(operations))
            };
        }
        let content = if kind == PatchKind::Apply { "application/yaml" } else { "application/json" };
        let patch = object(body, content, false)?;
        if !patch.is_object() {
            return Err(Failure::bad_request("the patch is no object"));
        }
        if kind == PatchKind::Apply && (patch["apiVersion"] != API_VERSION || patch["kind"] != KIND) {
            return Err(Failure::bad_request(
                "invalid object type: an apply says that it is a Lease, and of which apiVersion",
            ));
        }
        // What is merged stays where the patch has it.
        let mut paid = usize::MAX;
        weigh(&patch, DEEPEST, &mut paid)?;
        Ok(Self::Merged(kind, patch))
    }

    /// The version of the Lease that the patch is for, if it says so in its metadata.
    pub(crate) fn version(&self) -> Option<&str> {
        let Self::Merged(_, patch) = self else { return None };
        patch["metadata"]["resourceVersion"].as_str().filter(|version| !version.is_empty())
    }

    /// Returns `true` if the patch is for the version of this Lease and for no other one: it tests that version, or puts one into
    /// the Lease, which the write compares.
    pub(crate) fn names_version(&self, mut lease: Value, is_forced: bool) -> bool {
        const OTHER: &str = "another version";
        lease["metadata"]["resourceVersion"] = OTHER.into();
        let is_refused = self.apply(&mut lease, is_forced).is_err();
        is_refused
            || lease["metadata"]["resourceVersion"].as_str().is_some_and(|version| !["", OTHER].contains(&version))
    }

    /// Changes a Lease.
    pub(crate) fn apply(&self, lease: &mut Value, is_forced: bool) -> Result<(), Failure> {
        match self {
            Self::Merged(PatchKind::Strategic, patch) => {
                let mut patch = patch.clone();
                as_merge_patch(&mut patch, lease)?;
                merge(lease, &patch);
            }
            Self::Merged(PatchKind::Apply, patch) if !is_forced => {
                if let Some(path) = conflict(lease, patch, String::new()) {
                    return Err(Failure::apply_conflict(&path));
                }
                merge(lease, patch);
            }
            Self::Merged(_, patch) => merge(lease, patch),
            Self::Operations(operations) => {
                let mut copied = MOST_COPIED;
                for (number, operation) in operations.iter().enumerate() {
                    check(lease, operation, &mut copied)?;
                    json_patch::patch(lease, std::slice::from_ref(operation)).map_err(|mut error| {
                        error.operation = number;
                        Failure::unprocessable(error.to_string())
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// Refuses an operation that would make a Lease too deep, or that copies and moves more than is `left`.
fn check(lease: &Value, operation: &PatchOperation, left: &mut usize) -> Result<(), Failure> {
    // What a body has is paid for by its size, and needs no budget.
    let mut paid = usize::MAX;
    let (value, left) = match operation {
        PatchOperation::Add(one) => (Some(&one.value), &mut paid),
        PatchOperation::Replace(one) => (Some(&one.value), &mut paid),
        PatchOperation::Copy(one) => (lease.pointer(one.from.as_str()), left),
        PatchOperation::Move(one) => (lease.pointer(one.from.as_str()), left),
        // Nothing is larger afterwards. A test compares no more than the value that it names.
        PatchOperation::Remove(_) | PatchOperation::Test(_) => (None, left),
    };
    let levels = DEEPEST.saturating_sub(operation.path().count());
    value.map_or(Ok(()), |value| weigh(value, levels, left))
}

/// Takes the weight of a value, which is about what it takes in memory, from what is `left`. Fails if it has more levels, and
/// looks no further than both limits.
fn weigh(value: &Value, levels: usize, left: &mut usize) -> Result<(), Failure> {
    let Some(below) = levels.checked_sub(1) else {
        return Err(Failure::unprocessable(format!("the patch would make a Lease of more than {DEEPEST} levels")));
    };
    let texts = match value {
        Value::String(text) => text.len(),
        Value::Object(fields) => fields.keys().map(String::len).sum(),
        _ => 0,
    };
    *left = left.checked_sub(texts.saturating_add(size_of::<Value>())).ok_or_else(|| {
        let problem = "unable to complete the copy, the accumulated size increase of copy is over the limit";
        Failure::unprocessable(format!("{problem} {MOST_COPIED}"))
    })?;
    match value {
        Value::Array(values) => values.iter().try_for_each(|value| weigh(value, below, left)),
        Value::Object(fields) => fields.values().try_for_each(|value| weigh(value, below, left)),
        _ => Ok(()),
    }
}

/// Makes a merge patch of a strategic one, for what is there. The only list in a Lease is that of its owners, which are told apart
/// by their `uid`.
fn as_merge_patch(patch: &mut Value, lease: &Value) -> Result<(), Failure> {
    let Value::Object(fields) = patch else { return Ok(()) };
    let there = || lease.as_object().into_iter().flat_map(Map::keys).cloned();
    let directive = fields.remove("$patch");
    let kept = fields.remove("$retainKeys");
    fields.retain(|name, _| {
        // Owners have no order, and there are no finalizers.
        !name.starts_with("$setElementOrder/") && name != "$deleteFromPrimitiveList/finalizers"
    });
    let unwanted: Vec<String> = match (directive.as_ref().map(Value::as_str), kept.as_ref().and_then(Value::as_array)) {
        (None | Some(Some("merge")), None) => Vec::new(),
        (Some(Some("replace")), None) => there().filter(|name| !fields.contains_key(name)).collect(),
        (Some(Some("delete")), None) => {
            *patch = Value::Null;
            return Ok(());
        }
        (None, Some(kept)) => {
            let kept: HashSet<&str> = kept.iter().filter_map(Value::as_str).collect();
            there().filter(|name| !kept.contains(&**name)).collect()
        }
        _ => return Err(unknown_directive("$patch")),
    };
    fields.extend(unwanted.into_iter().map(|name| (name, Value::Null)));
    for (name, value) in fields {
        if name.starts_with('$') {
            return Err(unknown_directive(name));
        }
        if name == "ownerReferences"
            && let Value::Array(changes) = value
        {
            *changes = owners(lease[name].as_array().cloned().unwrap_or_default(), changes)?;
        } else {
            as_merge_patch(value, &lease[name])?;
        }
    }
    Ok(())
}

/// Merges owners. Each is found by its `uid` without a comparison with the others, of which a body has thousands.
fn owners(there: Vec<Value>, changes: &[Value]) -> Result<Vec<Value>, Failure> {
    let uid = |owner: &Value| owner["uid"].to_string();
    let is_kept = changes.iter().all(|change| change["$patch"] != "replace");
    let mut owners: Vec<Option<Value>> = there.into_iter().filter(|_| is_kept).map(Some).collect();
    let mut places: HashMap<String, usize> = owners.iter().flatten().map(uid).zip(0..).collect();
    for change in changes {
        match change["$patch"].as_str() {
            Some("delete") => drop(places.remove(&uid(change)).and_then(|place| owners[place].take())),
            Some("replace") => {}
            None if !change["$patch"].is_null() => return Err(unknown_directive("$patch")),
            None | Some("merge") => {
                let place = *places.entry(uid(change)).or_insert(owners.len());
                match owners.get_mut(place) {
                    Some(owner) => merge(owner.get_or_insert_default(), change),
                    None => owners.push(Some(change.clone())),
                }
            }
            Some(_) => return Err(unknown_directive("$patch")),
        }
    }
    Ok(owners.into_iter().flatten().collect())
}

fn unknown_directive(name: &str) -> Failure {
    Failure::unprocessable(format!("this server does not know what {name:?} of a strategic merge patch says here"))
}

/// What the server decides, or compares elsewhere. Clients send what they have read, or `null`.
const OF_SERVER: [&str; 6] = [
    ".metadata.resourceVersion",
    ".metadata.uid",
    ".metadata.creationTimestamp",
    ".metadata.generation",
    ".metadata.managedFields",
    ".metadata.annotations.leaderelection/token",
];

/// The first place at which an applied Lease has another value than what is there.
fn conflict(lease: &Value, patch: &Value, path: String) -> Option<String> {
    match (lease, patch) {
        (Value::Object(there), Value::Object(fields)) => fields.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            there.get(name).filter(|_| !OF_SERVER.contains(&&*path)).and_then(|there| conflict(there, value, path))
        }),
        (Value::Null, _) => None,
        _ => (lease != patch).then_some(path),
    }
}

/// A Lease that has nothing but its name.
pub(crate) fn empty(name: &str) -> Value {
    json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": Map::new()})
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = "application/json-patch+json";
    const STRATEGIC: &str = "application/strategic-merge-patch+json";

    fn patched(kind: &str, patch: &Value) -> Result<Value, Failure> {
        let mut lease = json!({"metadata": {"labels": {"a": "1"}}, "spec": {"holderIdentity": "pod-1"}});
        Patch::read(PatchKind::of(kind)?, patch.to_string().as_bytes())?.apply(&mut lease, false)?;
        Ok(lease)
    }

    #[test]
    fn patches_merge_remove_and_test() {
        let merge = json!({"metadata": {"labels": {"b": "2"}}, "spec": {"holderIdentity": null}});
        for kind in ["application/merge-patch+json", STRATEGIC] {
            let expected = json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {}});
            assert_eq!(patched(kind, &merge).unwrap(), expected, "{kind}");
        }
        let json = json!([
            {"op": "test", "path": "/spec/holderIdentity", "value": "pod-1"},
            {"op": "replace", "path": "/spec/holderIdentity", "value": "pod-2"},
        ]);
        assert_eq!(patched(JSON, &json).unwrap()["spec"]["holderIdentity"], "pod-2");
        let unmet = json!([json[0], {"op": "test", "path": "/spec/holderIdentity", "value": "pod-9"}]);
        let failure = patched(JSON, &unmet).unwrap_err();
        assert!(failure.message().contains("operation '/1'"), "{failure:?}");
        patched("application/json", &merge).unwrap_err();
    }

    #[test]
    fn directives_of_strategic_patches_are_followed_or_refused() {
        let labels = |labels: Value| patched(STRATEGIC, &json!({"metadata": {"labels": labels}}));
        for (patch, expected) in [
            (json!({"$patch": "merge", "b": "2"}), json!({"a": "1", "b": "2"})),
            (json!({"$patch": "replace", "b": "2"}), json!({"b": "2"})),
            (json!({"$retainKeys": ["b"], "b": "2"}), json!({"b": "2"})),
            (json!({"$patch": "delete"}), Value::Null),
        ] {
            assert_eq!(labels(patch.clone()).unwrap()["metadata"]["labels"], expected, "{patch}");
        }
        for patch in [json!({"$patch": "turn"}), json!({"$patch": 1}), json!({"$else": 1})] {
            labels(patch).unwrap_err();
        }
        let owner = |uid: &str| json!({"uid": uid, "name": "pod"});
        let owned = json!({"metadata": {"ownerReferences": [owner("1"), owner("2")]}});
        for (changes, expected) in [
            (json!([{"$patch": "delete", "uid": "1"}, {"$patch": "delete", "uid": "3"}]), json!([owner("2")])),
            (json!([{"uid": "2", "name": "job"}]), json!([owner("1"), {"uid": "2", "name": "job"}])),
            (json!([{"$patch": "delete", "uid": "2"}, owner("2")]), json!([owner("1"), owner("2")])),
            (json!([owner("3")]), json!([owner("1"), owner("2"), owner("3")])),
            (json!([{"$patch": "replace"}, owner("3")]), json!([owner("3")])),
        ] {
            let metadata = json!({"$setElementOrder/ownerReferences": [{"uid": "2"}], "ownerReferences": changes});
            let patch = json!({"metadata": metadata}).to_string();
            let mut lease = owned.clone();
            Patch::read(PatchKind::Strategic, patch.as_bytes()).unwrap().apply(&mut lease, false).unwrap();
            assert_eq!(lease["metadata"]["ownerReferences"], expected, "{patch}");
        }
        patched(STRATEGIC, &json!({"metadata": {"ownerReferences": [{"$patch": "turn", "uid": "1"}]}})).unwrap_err();
    }

    #[test]
    fn what_a_patch_costs_is_known_before_it_is_paid() {
        let text = json!([{"op": "add", "path": "/metadata/labels/a", "value": "x".repeat(30_000)}]);
        let with = |operations: Vec<Value>| Value::Array([text.as_array().unwrap().clone(), operations].concat());
        let copy =
            |number| json!({"op": "copy", "from": "/metadata/labels/a", "path": format!("/metadata/labels/c{number}")});
        let copied = |count: usize| with((0..count).map(copy).collect());
        let moved = |count: usize| {
            let step = |number: usize| {
                let label = |number: usize| ["/metadata/labels/a", "/metadata/labels/b"][number % 2];
                json!({"op": "move", "from": label(number), "path": label(number + 1)})
            };
            with((0..count).map(step).collect())
        };
        let tested = |count| {
            Value::Array(vec![json!({"op": "test", "path": "/spec", "value": {"holderIdentity": "pod-1"}}); count])
        };
        let nested = |levels: usize| (1..levels).fold(json!("x"), |value, _| json!({"a": value}));
        let added = |levels| json!([{"op": "add", "path": "/metadata/labels/b", "value": nested(levels)}]);
        for (what, within, beyond, message) in [
            ("copies of a long text", copied(2), copied(3), "copy"),
            ("moves of a long text", moved(2), moved(3), "copy"),
            ("operations", tested(MOST_OPERATIONS), tested(MOST_OPERATIONS + 1), "operations"),
            ("levels in a body", added(DEEPEST - 3), added(DEEPEST - 2), "levels"),
        ] {
            patched(JSON, &within).unwrap_or_else(|failure| panic!("{what}: {failure:?}"));
            let failure = patched(JSON, &beyond).unwrap_err();
            assert!(failure.message().contains(message), "{what}: {failure:?}");
        }
        patched("application/merge-patch+json", &nested(DEEPEST)).unwrap();
        patched("application/merge-patch+json", &nested(DEEPEST + 1)).unwrap_err();
    }

    #[test]
    fn copies_into_themselves_stay_shallow() {
        // Each operation puts a copy of the whole below its deepest place, so the depth doubles.
        let (mut operations, mut deepest) = (Vec::new(), String::new());
        for _ in 0..12 {
            operations.push(json!({"op": "copy", "from": "", "path": format!("{deepest}/spec")}));
            deepest = format!("{deepest}/spec{deepest}");
        }
        let failure = patched(JSON, &Value::Array(operations)).unwrap_err();
        assert!(failure.message().contains("levels"), "{failure:?}");
    }
}
