//! Objects, over JSON: <https://cloud.google.com/storage/docs/json_api/v1/objects>.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Method;
use hyper::http::request::Parts;
use percent_encoding::percent_decode_str;
use serde_json::json;
use url::form_urlencoded;

use super::state::{BUCKET, Refusal, Response, State, TOO_SOON};
use crate::mutex::lock;

pub(super) fn answer(state: &State, head: &Parts, body: &Bytes) -> Response {
    let path: Vec<&str> = head.uri.path().trim_start_matches('/').split('/').collect();
    match (&head.method, &path[..]) {
        (&Method::POST, ["upload", "storage", "v1", "b", BUCKET, "o"]) => upload(state, head, body),
        (&Method::GET, ["storage", "v1", "b", BUCKET, "o", name]) => download(state, name),
        (_, ["storage" | "upload", ..]) => error(404, "notFound", "The specified bucket does not exist."),
        _ => error(400, "invalid", "the fake does not know this request"),
    }
}

fn upload(state: &State, head: &Parts, body: &Bytes) -> Response {
    let parameter = |name: &str| {
        let query = head.uri.query().unwrap_or_default().as_bytes();
        form_urlencoded::parse(query).find(|(found, _)| found == name).map(|(_, value)| value.into_owned())
    };
    let (Some("multipart"), Some(name)) = (parameter("uploadType").as_deref(), parameter("name")) else {
        return error(400, "invalid", "the fake knows only multipart uploads");
    };
    let (Some((metadata, media)), Ok(expected)) =
        (parts(head, body), parameter("ifGenerationMatch").map(|text| text.parse()).transpose())
    else {
        return error(400, "invalid", "the fake cannot read this upload");
    };
    match lock(&state.bucket).write(&name, expected, media.clone(), state.options.interval()) {
        Ok(generation) => ok(json!({
            "kind": "storage#object",
            "name": name,
            "bucket": BUCKET,
            "generation": generation.to_string(),
            "metageneration": "1",
            "size": media.len().to_string(),
            "contentType": metadata["contentType"],
            "cacheControl": metadata["cacheControl"],
        })),
        Err(Refusal::Precondition) => {
            error(412, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.")
        }
        Err(Refusal::TooSoon) => error(429, "rateLimitExceeded", TOO_SOON),
    }
}

/// Splits a multipart body into its metadata, which must forbid caches, and its content.
fn parts(head: &Parts, body: &Bytes) -> Option<(serde_json::Value, Bytes)> {
    let boundary = head.headers.get("content-type")?.to_str().ok()?.split_once("boundary=")?.1.trim_matches('"');
    let delimiter = format!("--{boundary}");
    let find = |pattern: &[u8], from: usize| {
        Some(from + body.get(from..)?.windows(pattern.len()).position(|bytes| bytes == pattern)?)
    };
    let content = |from: usize| {
        let start = find(b"\r\n\r\n", find(delimiter.as_bytes(), from)?)? + 4;
        Some(start..find(format!("\r\n{delimiter}").as_bytes(), start)?)
    };
    let metadata = content(0)?;
    let media = content(metadata.end)?;
    let metadata: serde_json::Value = serde_json::from_slice(&body[metadata]).ok()?;
    (metadata["cacheControl"] == "no-store").then(|| (metadata, body.slice(media)))
}

fn download(state: &State, name: &str) -> Response {
    let name = percent_decode_str(name).decode_utf8_lossy();
    let Some(object) = lock(&state.bucket).objects.get(&*name).cloned() else {
        return text(404, format!("No such object: {BUCKET}/{name}"));
    };
    let response = hyper::Response::builder()
        .header("content-type", "application/json")
        .header("x-goog-generation", object.generation)
        .header("x-goog-metageneration", 1)
        .header("x-goog-stored-content-length", object.body.len());
    response.body(Full::new(object.body).boxed()).expect("valid headers")
}

fn ok(value: serde_json::Value) -> Response {
    let response = hyper::Response::builder().header("content-type", "application/json");
    response.body(Full::from(value.to_string()).boxed()).expect("valid headers")
}

pub(super) fn error(status: u16, reason: &str, message: &str) -> Response {
    let errors = json!([{ "domain": "global", "reason": reason, "message": message }]);
    text(status, json!({ "error": { "code": status, "message": message, "errors": errors } }).to_string())
}

fn text(status: u16, body: String) -> Response {
    hyper::Response::builder().status(status).body(Full::from(body).boxed()).expect("a valid status")
}
