//! Kubernetes' protobuf: client-go sends Leases in it, and knows no way back.
//!
//! The messages have the numbers of `generated.proto` in k8s.io/api and k8s.io/apimachinery. Answers are always JSON, which
//! every client that sends protobuf accepts.

use std::collections::HashMap;

use chrono::DateTime;
use prost::Message;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::lease::MicroTime;
use crate::owner::OwnerReference;

/// The bytes that every object begins with.
const MAGIC: &[u8] = b"k8s\0";

#[derive(Message)]
struct Unknown {
    #[prost(message, optional, tag = "1")]
    type_meta: Option<TypeMeta>,
    #[prost(bytes = "vec", tag = "2")]
    raw: Vec<u8>,
}

#[derive(Message)]
struct TypeMeta {
    #[prost(string, tag = "1")]
    api_version: String,
    #[prost(string, tag = "2")]
    kind: String,
}

#[derive(Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct Lease {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
    #[prost(message, optional, tag = "2")]
    spec: Option<LeaseSpec>,
}

#[derive(Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectMeta {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(string, optional, tag = "2")]
    generate_name: Option<String>,
    #[prost(string, optional, tag = "3")]
    namespace: Option<String>,
    #[prost(string, optional, tag = "5")]
    uid: Option<String>,
    #[prost(string, optional, tag = "6")]
    resource_version: Option<String>,
    #[prost(map = "string, string", tag = "11")]
    labels: HashMap<String, String>,
    #[prost(map = "string, string", tag = "12")]
    annotations: HashMap<String, String>,
    #[prost(message, repeated, tag = "13")]
    owner_references: Vec<OwnerReference>,
    #[prost(string, repeated, tag = "14")]
    finalizers: Vec<String>,
}

#[derive(Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct LeaseSpec {
    #[prost(string, optional, tag = "1")]
    holder_identity: Option<String>,
    #[prost(int32, optional, tag = "2")]
    lease_duration_seconds: Option<i32>,
    #[prost(message, optional, tag = "3")]
    acquire_time: Option<Time>,
    #[prost(message, optional, tag = "4")]
    renew_time: Option<Time>,
    #[prost(int32, optional, tag = "5")]
    lease_transitions: Option<i32>,
}

#[derive(Message)]
struct Time {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let time = self.nanos.try_into().ok().and_then(|nanos| DateTime::from_timestamp(self.seconds, nanos));
        time.map(MicroTime).serialize(serializer)
    }
}

#[derive(Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct DeleteOptions {
    #[prost(message, optional, tag = "2")]
    preconditions: Option<Preconditions>,
    #[prost(string, repeated, tag = "5")]
    dry_run: Vec<String>,
}

#[derive(Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct Preconditions {
    #[prost(string, optional, tag = "1")]
    uid: Option<String>,
    #[prost(string, optional, tag = "2")]
    resource_version: Option<String>,
}

/// Reads an object as the same object in JSON. An object of a kind that this server does not store has only its kind.
pub(crate) fn to_json(body: &[u8]) -> Result<Value, String> {
    let body = body.strip_prefix(MAGIC).ok_or("it does not begin as Kubernetes' protobuf does")?;
    let unknown: Unknown = message(body)?;
    let TypeMeta { api_version, kind } = unknown.type_meta.unwrap_or_default();
    let mut object = match kind.as_str() {
        "Lease" => json_of::<Lease>(&unknown.raw)?,
        "DeleteOptions" => json_of::<DeleteOptions>(&unknown.raw)?,
        _ => json!({}),
    };
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    Ok(object)
}

fn json_of<M: Message + Default + Serialize>(bytes: &[u8]) -> Result<Value, String> {
    serde_json::to_value(message::<M>(bytes)?).map_err(|error| error.to_string())
}

fn message<M: Message + Default>(bytes: &[u8]) -> Result<M, String> {
    M::decode(bytes).map_err(|error| error.to_string())
}
