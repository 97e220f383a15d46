//! The owner of a Lease, in JSON and in Kubernetes' protobuf.

use prost::Message;
use serde::{Deserialize, Serialize};

#[derive(Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct OwnerReference {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(string, tag = "4")]
    uid: String,
    #[prost(string, tag = "5")]
    api_version: String,
    #[prost(bool, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    controller: Option<bool>,
    #[prost(bool, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    block_owner_deletion: Option<bool>,
}

/// What an API server would not accept of owners.
pub(crate) fn flaw(owners: &[OwnerReference]) -> Option<&'static str> {
    let lacks = |owner: &OwnerReference| {
        let fields = [&owner.api_version, &owner.kind, &owner.name, &owner.uid];
        fields.into_iter().any(|field| field.is_empty())
    };
    if owners.iter().any(lacks) {
        return Some("Required value: an owner has an apiVersion, a kind, a name and a uid");
    }
    let controllers = owners.iter().filter(|owner| owner.controller == Some(true)).count();
    (controllers > 1).then_some("Invalid value: only one owner can be the controller")
}
