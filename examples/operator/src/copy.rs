//! The right content of a copy, and the refusal of leaders that may not write it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use kube::{Resource as _, ResourceExt as _};
use thiserror::Error;

/// The annotation with the fencing token of the leader that wrote a copy.
const TOKEN: &str = "operator.example/fencing-token";

/// The label that distinguishes copies from the objects of others.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "operator.example");

/// The selector for ConfigMaps to copy.
pub(crate) const ORIGINALS: &str = "operator.example/copy=true";

/// The selector for copies.
pub(crate) const COPIES: &str = "app.kubernetes.io/managed-by=operator.example";

/// The write that makes the copy right.
#[derive(Debug, PartialEq)]
pub(crate) enum Write {
    Create(ConfigMap),
    Replace(ConfigMap),
}

/// The reason not to write.
#[derive(Debug, Error)]
pub(crate) enum Refusal {
    #[error(
        "the ConfigMap {0} was written under fencing token {1}, which is larger than this leader's: another replica leads"
    )]
    LaterLeader(String, u64),
    #[error("the ConfigMap {0} exists and is not a copy; rename it, or rename the original")]
    OfSomebodyElse(String),
}

/// The name of the copy.
pub(crate) fn name(original: &ConfigMap) -> String {
    format!("{}-copy", original.name_any())
}

/// Returns the write that is due, if any.
///
/// A leader writes its token into every copy, even if the content is right already. The write changes the resource version, so
/// after it a late write of an earlier leader conflicts.
pub(crate) fn due(original: &ConfigMap, present: Option<ConfigMap>, token: u64) -> Result<Option<Write>, Refusal> {
    let Some(present) = present else {
        return Ok(Some(Write::Create(written(original, ObjectMeta::default(), token))));
    };
    if present.labels().get(MANAGED_BY.0).is_none_or(|manager| manager != MANAGED_BY.1) {
        return Err(Refusal::OfSomebodyElse(name(original)));
    }
    let by = present.annotations().get(TOKEN).and_then(|token| token.parse().ok());
    if let Some(by) = by.filter(|by| *by > token) {
        return Err(Refusal::LaterLeader(name(original), by));
    }
    // The replacement keeps the uid and the resource version, which the API server compares.
    let right = written(original, present.metadata.clone(), token);
    Ok((right != present).then_some(Write::Replace(right)))
}

fn written(original: &ConfigMap, mut metadata: ObjectMeta, token: u64) -> ConfigMap {
    metadata.name = Some(name(original));
    metadata.labels.get_or_insert_default().insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
    metadata.annotations.get_or_insert_with(BTreeMap::new).insert(TOKEN.to_owned(), token.to_string());
    metadata.owner_references = original.controller_owner_ref(&()).map(|owner| vec![owner]);
    ConfigMap { metadata, data: original.data.clone(), binary_data: original.binary_data.clone(), immutable: None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn original(content: &str) -> ConfigMap {
        serde_json::from_value(json!({
            "metadata": {"name": "settings", "uid": "u1"}, "data": {"content": content},
        }))
        .unwrap()
    }

    /// The copy as the API server has it after a leader with this token.
    fn copy(content: &str, token: u64) -> ConfigMap {
        let Ok(Some(Write::Create(mut copy))) = due(&original(content), None, token) else { panic!("it is due") };
        copy.metadata.resource_version = Some("7".to_owned());
        copy
    }

    #[test]
    fn a_missing_copy_is_created_under_the_token_and_owned_by_its_original() {
        let created = copy("one", 3);
        assert_eq!((created.name_any().as_str(), created.annotations()[TOKEN].as_str()), ("settings-copy", "3"));
        assert_eq!(created.data, original("one").data);
        assert_eq!(created.owner_references()[0].uid, "u1");
    }

    #[test]
    fn a_right_copy_of_this_leader_is_left_alone() {
        assert_eq!(due(&original("one"), Some(copy("one", 3)), 3).unwrap(), None);
    }

    #[test]
    fn a_changed_original_and_a_new_leader_replace_the_version_that_was_read() {
        for (content, token) in [("two", 3), ("one", 4)] {
            let write = due(&original(content), Some(copy("one", 3)), token).unwrap();
            let Some(Write::Replace(replaced)) = write else { panic!("{write:?}") };
            assert_eq!(replaced.resource_version().as_deref(), Some("7"));
            assert_eq!(replaced.annotations()[TOKEN], token.to_string());
        }
    }

    #[test]
    fn a_leader_of_the_past_writes_nothing() {
        let refusal = due(&original("old"), Some(copy("new", 4)), 3).unwrap_err();
        assert!(matches!(refusal, Refusal::LaterLeader(_, 4)), "{refusal}");
    }

    #[test]
    fn a_config_map_of_somebody_else_stays() {
        let theirs = ConfigMap {
            metadata: ObjectMeta { name: Some("settings-copy".to_owned()), ..Default::default() },
            ..Default::default()
        };
        assert!(matches!(due(&original("one"), Some(theirs), 3), Err(Refusal::OfSomebodyElse(_))));
    }
}
