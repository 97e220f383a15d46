//! The bodies of requests.

use std::error::Error as _;
use std::fmt::Display;

use axum::body::{Body, to_bytes};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use bytes::Bytes;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::protobuf;
use crate::status::Failure;

/// The deepest level of a Lease, of which the kinds of Kubernetes use five.
pub(crate) const DEEPEST: usize = 32;

/// The largest body.
pub(crate) const LARGEST: usize = 64 * 1024;

/// The type of a body without its parameters; JSON if the request names none, as Python's client does.
pub(crate) fn content_type(headers: &HeaderMap) -> &str {
    let named = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match named.split(';').next().unwrap_or_default().trim() {
        "" => "application/json",
        named => named,
    }
}

/// Receives a body.
pub(crate) async fn receive(body: Body, deadline: Instant) -> Result<Bytes, Failure> {
    let received = timeout_at(deadline, to_bytes(body, LARGEST)).await;
    let received = received.map_err(|_| Failure::bad_request("the body has not arrived in time"))?;
    received.map_err(|error| {
        // The limit is the only cause that has another one.
        match error.source() {
            Some(cause) if cause.to_string().contains("limit") => {
                Failure::too_large(format!("limit is {LARGEST} bytes"))
            }
            _ => Failure::bad_request("the body has not arrived"),
        }
    })
}

/// Reads an object in JSON, in YAML or in Kubernetes' protobuf. A strict client learns of a field that is there twice.
pub(crate) fn object(body: &[u8], content_type: &str, is_strict: bool) -> Result<Value, Failure> {
    let undecodable = |error: &dyn Display| Failure::undecodable("the body", error);
    match content_type {
        "application/json" => {
            let object = serde_json::from_slice(body).map_err(|error| undecodable(&error))?;
            // JSON is YAML, whose reader tells one field from another of the same name.
            if is_strict
                && let Err(twice) = yaml(body).map_err(|error| error.without_snippet().to_string())
                && twice.contains("duplicate")
            {
                return Err(undecodable(&format_args!("strict decoding error: {twice}")));
            }
            Ok(object)
        }
        "application/yaml" => yaml(body).map_err(|error| undecodable(error.without_snippet())),
        "application/vnd.kubernetes.protobuf" => protobuf::to_json(body).map_err(|error| undecodable(&error)),
        other => Err(Failure::media_type(other)),
    }
}

/// Reads YAML in which nothing stands for something else, so that its size bounds its cost.
fn yaml(body: &[u8]) -> Result<Value, serde_saphyr::Error> {
    let budget = serde_saphyr::budget! { max_aliases: 0, max_anchors: 0, max_depth: DEEPEST, max_documents: 1 };
    serde_saphyr::from_slice_with_options(body, serde_saphyr::options! { budget: budget })
}
