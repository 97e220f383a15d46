//! The four kinds of patches.

use json_patch::{PatchOperation, merge};
use serde_json::{Map, Value, json};

use crate::body::LARGEST;
use crate::status::Failure;

/// The largest Lease that a patch makes. Copies of copies grow without limit.
const LARGEST_PATCHED: usize = 4 * LARGEST;

/// The kind of a patch, by the type of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    /// A strategic merge patch is one for a Lease: no list in it is merged.
    Merge,
    Apply,
}

impl PatchKind {
    pub(crate) fn of(content: &str) -> Result<Self, Failure> {
        match content {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" | "application/strategic-merge-patch+json" => Ok(Self::Merge),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            other => Err(Failure::media_type(other)),
        }
    }

    /// Changes a Lease as a patch says.
    pub(crate) fn apply(self, lease: &mut Value, body: &[u8]) -> Result<(), Failure> {
        let unreadable = |error: serde_json::Error| {
            let advice = if self == Self::Apply { "; send JSON, which is YAML too" } else { "" };
            Failure::undecodable("the body", format_args!("{error}{advice}"))
        };
        if self == Self::Json {
            let operations: Vec<PatchOperation> = serde_json::from_slice(body).map_err(unreadable)?;
            for operation in operations {
                json_patch::patch(lease, &[operation]).map_err(|error| Failure::unprocessable(error.to_string()))?;
                if lease.to_string().len() > LARGEST_PATCHED {
                    return Err(Failure::too_large(LARGEST_PATCHED));
                }
            }
            return Ok(());
        }
        let mut patch: Value = serde_json::from_slice(body).map_err(unreadable)?;
        if !patch.is_object() {
            return Err(Failure::bad_request("the patch is no object"));
        }
        without_directives(&mut patch);
        merge(lease, &patch);
        Ok(())
    }
}

/// Removes what a strategic merge patch says about lists.
fn without_directives(patch: &mut Value) {
    if let Value::Object(fields) = patch {
        fields.retain(|name, _| !name.starts_with('$'));
        fields.values_mut().for_each(without_directives);
    }
}

/// A Lease that has nothing but its name.
pub(crate) fn empty(name: &str) -> Value {
    json!({"apiVersion": crate::status::API_VERSION, "kind": crate::status::KIND, "metadata": {"name": name}, "spec": Map::new()})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(kind: &str, patch: &Value) -> Result<Value, Failure> {
        let mut lease = json!({"metadata": {"labels": {"a": "1"}}, "spec": {"holderIdentity": "pod-1"}});
        PatchKind::of(kind)?.apply(&mut lease, patch.to_string().as_bytes())?;
        Ok(lease)
    }

    #[test]
    fn patches_merge_remove_and_test() {
        let merge = json!({"metadata": {"labels": {"$patch": "merge", "b": "2"}}, "spec": {"holderIdentity": null}});
        for kind in ["application/merge-patch+json", "application/strategic-merge-patch+json"] {
            let expected = json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {}});
            assert_eq!(patched(kind, &merge).unwrap(), expected, "{kind}");
        }
        let json = json!([
            {"op": "test", "path": "/spec/holderIdentity", "value": "pod-1"},
            {"op": "replace", "path": "/spec/holderIdentity", "value": "pod-2"},
        ]);
        assert_eq!(patched("application/json-patch+json", &json).unwrap()["spec"]["holderIdentity"], "pod-2");
        let unmet = json!([{"op": "test", "path": "/spec/holderIdentity", "value": "pod-9"}]);
        patched("application/json-patch+json", &unmet).unwrap_err();
        patched("application/json", &merge).unwrap_err();
    }

    #[test]
    fn copies_of_copies_are_stopped() {
        let mut operations = vec![json!({"op": "add", "path": "/metadata/labels/a", "value": "x".repeat(30_000)})];
        operations.extend(
            (0..8).map(
                |number| json!({"op": "copy", "from": "/metadata", "path": format!("/metadata/labels/c{number}")}),
            ),
        );
        patched("application/json-patch+json", &Value::Array(operations)).unwrap_err();
    }
}
