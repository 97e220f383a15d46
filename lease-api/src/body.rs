//! The bodies of requests.

use std::error::Error as _;

use axum::body::{Body, to_bytes};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use bytes::Bytes;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::protobuf;
use crate::status::Failure;

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

/// Reads an object in JSON or in Kubernetes' protobuf.
pub(crate) fn object(body: &[u8], content_type: &str) -> Result<Value, Failure> {
    match content_type {
        "application/json" => serde_json::from_slice(body).map_err(|error| Failure::undecodable("the body", error)),
        "application/vnd.kubernetes.protobuf" => {
            protobuf::to_json(body).map_err(|error| Failure::undecodable("the body", error))
        }
        other => Err(Failure::media_type(other)),
    }
}
