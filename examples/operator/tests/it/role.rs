//! The permissions in the manifests.

use std::collections::BTreeSet;

use serde_json::Value;

const MANIFESTS: [&str; 2] = [include_str!("../../kubernetes.yaml"), include_str!("../../leader-service.yaml")];

/// Asserts that the roles allow what the replicas have done, and nothing else.
pub(crate) fn is_what_was_used(used: &BTreeSet<String>) {
    let documents = MANIFESTS.iter().flat_map(|manifests| manifests.split("\n---\n"));
    let documents = documents.map(|document| serde_saphyr::from_str::<Value>(document).unwrap());
    let roles = documents.filter(|document| document["kind"] == "Role");
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut allowed = BTreeSet::new();
    for rule in roles.flat_map(|role| role["rules"].as_array().unwrap().clone()) {
        for resource in texts(&rule["resources"]) {
            allowed.extend(texts(&rule["verbs"]).iter().map(|verb| format!("{verb} {resource}")));
        }
    }
    assert_eq!(allowed, *used);
}
