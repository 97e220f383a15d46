//! The description of the API, for which `kubectl` asks before its first request.

use serde_json::{Value, json};

use crate::status::{API_VERSION, GROUP, KIND};

/// The answer at a path that describes the server; `None` if there is none.
pub(crate) fn at(path: &[&str]) -> Option<Value> {
    Some(match path {
        ["version"] => json!({
            "major": "1", "minor": "37", "gitVersion": concat!("v1.37.0+leaderelect-", env!("CARGO_PKG_VERSION")),
            "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "",
            "compiler": "rustc", "platform": "",
        }),
        ["api"] => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        ["api", "v1"] => json!({
            "kind": "APIResourceList", "groupVersion": "v1",
            "resources": [{
                "name": "events", "singularName": "event", "namespaced": true, "kind": "Event", "verbs": ["create"],
            }],
        }),
        ["apis"] => json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group()]}),
        ["apis", GROUP] => {
            let mut group = group();
            group["kind"] = "APIGroup".into();
            group["apiVersion"] = "v1".into();
            group
        }
        ["apis", GROUP, "v1"] => json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": API_VERSION,
            "resources": [{
                "name": "leases", "singularName": "lease", "namespaced": true, "kind": KIND,
                "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
            }],
        }),
        ["openapi", "v3"] => json!({"paths": {"apis/coordination.k8s.io/v1": {
            "serverRelativeURL": "/openapi/v3/apis/coordination.k8s.io/v1",
        }}}),
        ["openapi", "v3", "apis", GROUP, "v1"] => openapi(),
        _ => return None,
    })
}

fn group() -> Value {
    let version = json!({"groupVersion": API_VERSION, "version": "v1"});
    json!({"name": GROUP, "versions": [version], "preferredVersion": version})
}

/// The part of the description of the API without which `kubectl apply`, `edit` and `explain` do nothing.
fn openapi() -> Value {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer", "format": "int32"});
    let time = json!({"type": "string", "format": "date-time"});
    let texts = json!({"type": "object", "additionalProperties": text});
    let objects = json!({"type": "array", "items": {"type": "object"}});
    let kind = json!({"group": GROUP, "version": "v1", "kind": KIND});
    let parameters: Vec<_> = ["dryRun", "fieldManager", "fieldValidation", "force"]
        .into_iter()
        .map(|name| json!({"name": name, "in": "query", "schema": text}))
        .collect();
    let lease = json!({"$ref": "#/components/schemas/io.k8s.api.coordination.v1.Lease"});
    let answer = json!({"200": {"description": "OK", "content": {"application/json": {"schema": lease}}}});
    let operation = |action: &str, takes: &str| {
        json!({
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind, "parameters": parameters,
            "requestBody": {"content": {takes: {"schema": lease}}}, "responses": answer,
        })
    };
    json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.37.0"},
        "paths": {
            "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases": {"post": operation("post", "application/json")},
            "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}": {
                "put": operation("put", "application/json"),
                "patch": operation("patch", "application/merge-patch+json"),
            },
        },
        "components": {"schemas": {"io.k8s.api.coordination.v1.Lease": {
            "description": "Lease defines a lease concept.", "type": "object",
            "x-kubernetes-group-version-kind": [kind],
            "properties": {
                "apiVersion": text, "kind": text,
                "metadata": {"type": "object", "properties": {
                    "name": text, "namespace": text, "uid": text, "resourceVersion": text, "labels": texts,
                    "annotations": texts, "creationTimestamp": time, "ownerReferences": objects, "generateName": text,
                }},
                "spec": {"type": "object", "properties": {
                    "holderIdentity": text, "leaseDurationSeconds": number, "acquireTime": time, "renewTime": time,
                    "leaseTransitions": number,
                }},
            },
        }}},
    })
}
