//! Deletions and listings over gRPC, with the parts of the messages that the fake reads and writes:
//! <https://cloud.google.com/storage/docs/reference/rpc/google.storage.v2>.

use std::convert::Infallible;

use bytes::{BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::HeaderMap;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use prost::Message;

use super::state::{BUCKET, Refusal, Response, State, TOO_SOON};
use crate::mutex::lock;

const FAILED_PRECONDITION: u16 = 9;
const NOT_FOUND: u16 = 5;
const RESOURCE_EXHAUSTED: u16 = 8;
const UNIMPLEMENTED: u16 = 12;

#[derive(Message)]
struct DeleteObjectRequest {
    #[prost(string, tag = "1")]
    bucket: String,
    #[prost(string, tag = "2")]
    object: String,
    #[prost(int64, optional, tag = "5")]
    if_generation_match: Option<i64>,
}

#[derive(Message)]
struct ListObjectsRequest {
    #[prost(string, tag = "1")]
    parent: String,
    #[prost(string, tag = "3")]
    page_token: String,
    #[prost(string, tag = "6")]
    prefix: String,
}

#[derive(Message)]
struct ListObjectsResponse {
    #[prost(message, repeated, tag = "1")]
    objects: Vec<Object>,
    #[prost(string, tag = "3")]
    next_page_token: String,
}

#[derive(Message)]
struct Object {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int64, tag = "3")]
    generation: i64,
}

pub(super) fn answer(state: &State, head: &Parts, body: &Bytes) -> Response {
    // The body is one uncompressed message, after a flag and its length.
    let message = body.get(5..).unwrap_or_default();
    match head.uri.path() {
        "/google.storage.v2.Storage/DeleteObject" => delete(state, Message::decode(message).expect("a request")),
        "/google.storage.v2.Storage/ListObjects" => list(state, Message::decode(message).expect("a request")),
        _ => error(UNIMPLEMENTED, "the fake does not know this call"),
    }
}

fn delete(state: &State, request: DeleteObjectRequest) -> Response {
    if let Some(refusal) = unknown_bucket(&request.bucket) {
        return refusal;
    }
    let mut bucket = lock(&state.bucket);
    if !bucket.objects.contains_key(&request.object) {
        return error(NOT_FOUND, "No such object");
    }
    match bucket.check(&request.object, request.if_generation_match, state.options.interval()) {
        Ok(()) => {}
        Err(Refusal::Precondition) => {
            return error(FAILED_PRECONDITION, "At least one of the pre-conditions you specified did not hold.");
        }
        Err(Refusal::TooSoon) => return error(RESOURCE_EXHAUSTED, TOO_SOON),
    }
    bucket.objects.remove(&request.object);
    ok(&())
}

fn list(state: &State, request: ListObjectsRequest) -> Response {
    if let Some(refusal) = unknown_bucket(&request.parent) {
        return refusal;
    }
    let page_size = state.options.page_size.unwrap_or(1000);
    let bucket = lock(&state.bucket);
    // The token of a page is its first name.
    let start = request.page_token.as_str().max(&request.prefix);
    let found = bucket.objects.range(start.to_owned()..);
    let mut found = found
        .take_while(|(name, _)| name.starts_with(&request.prefix))
        .map(|(name, object)| Object { name: name.clone(), generation: object.generation });
    let objects = found.by_ref().take(page_size).collect();
    ok(&ListObjectsResponse { objects, next_page_token: found.next().map(|next| next.name).unwrap_or_default() })
}

fn unknown_bucket(name: &str) -> Option<Response> {
    (name != format!("projects/_/buckets/{BUCKET}")).then(|| error(NOT_FOUND, "The specified bucket does not exist."))
}

fn ok(message: &impl Message) -> Response {
    let message = message.encode_to_vec();
    let mut frame = BytesMut::with_capacity(5 + message.len());
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).expect("a short message"));
    frame.put_slice(&message);
    let trailers = HeaderMap::from_iter([("grpc-status".parse().expect("a name"), HeaderValue::from_static("0"))]);
    let body = Full::new(frame.freeze()).with_trailers(async { Some(Ok::<_, Infallible>(trailers)) });
    response().body(body.boxed()).expect("valid headers")
}

pub(super) fn error(code: u16, message: &str) -> Response {
    let response = response().header("grpc-status", code).header("grpc-message", message);
    response.body(Empty::new().boxed()).expect("valid headers")
}

fn response() -> hyper::http::response::Builder {
    hyper::Response::builder().header("content-type", "application/grpc")
}
