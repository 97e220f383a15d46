//! The permissions in `kubernetes.yaml`.

use std::collections::BTreeSet;

use serde_json::Value;

const MANIFESTS: &str = include_str!("../../kubernetes.yaml");

/// Asserts that the role allows what the replicas have done, and nothing else.
pub(crate) fn is_what_was_used(used: &BTreeSet<String>) {
    let documents = MANIFESTS.split("\n---\n").map(|document| serde_saphyr::from_str::<Value>(document).unwrap());
    let role = documents.into_iter().find(|document| document["kind"] == "Role").unwrap();
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut allowed = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for resource in texts(&rule["resources"]) {
            allowed.extend(texts(&rule["verbs"]).iter().map(|verb| format!("{verb} {resource}")));
        }
    }
    assert_eq!(allowed, *used);
}
