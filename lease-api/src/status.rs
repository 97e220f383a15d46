//! The failures of an API server: objects of the kind `Status`.

use std::fmt::Display;
use std::time::Duration;

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use leaderelection::causes::with_causes;
use leaderelection::{StoreError, StoreErrorKind};
use serde_json::{Value, json};

pub(crate) const GROUP: &str = "coordination.k8s.io";
pub(crate) const API_VERSION: &str = "coordination.k8s.io/v1";
pub(crate) const KIND: &str = "Lease";
const RESOURCE: &str = "leases.coordination.k8s.io";

/// The beginning of what is said of a write whose outcome is unknown.
const IN_DOUBT: &str = "nobody knows whether the Lease was written";

/// A failure, in the words of an API server.
#[derive(Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    reason: &'static str,
    message: String,
    details: Value,
    retry_after: Option<Duration>,
}

impl Failure {
    fn new(status: StatusCode, reason: &'static str, message: impl Into<String>, details: Value) -> Self {
        Self { status, reason, message: message.into(), details, retry_after: None }
    }

    pub(crate) fn not_found(name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", format!("{RESOURCE} {name:?} not found"), resource(name))
    }

    pub(crate) fn exists(name: &str) -> Self {
        let message = format!("{RESOURCE} {name:?} already exists");
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message, resource(name))
    }

    pub(crate) fn conflict(name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {RESOURCE} {name:?}: {why}");
        Self::new(StatusCode::CONFLICT, "Conflict", message, resource(name))
    }

    /// The failure of a write that names a version that is not the object's.
    pub(crate) fn modified(name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(name, why)
    }

    /// The failure of a deletion whose precondition does not hold. It names the kind in the place of the resource.
    pub(crate) fn unmet(name: &str, field: &str) -> Self {
        let why = format!("the {field} in the precondition does not match");
        let message = format!("Operation cannot be fulfilled on {KIND}.{GROUP} {name:?}: {why}");
        Self::new(StatusCode::CONFLICT, "Conflict", message, details(KIND, name))
    }

    pub(crate) fn invalid(name: &str, field: &str, why: &str) -> Self {
        let message = format!("{KIND}.{GROUP} {name:?} is invalid: {field}: {why}");
        let mut details = details(KIND, name);
        details["causes"] = json!([{"reason": "FieldValueInvalid", "message": why, "field": field}]);
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message, details)
    }

    /// The failure of an apply that would change what somebody else may own.
    pub(crate) fn apply_conflict(path: &str) -> Self {
        let message = format!(
            "Apply failed with 1 conflict: {path} has another value, and this server keeps no owners of fields; with \
             --force-conflicts (force=true), the apply changes it"
        );
        Self::new(StatusCode::CONFLICT, "Conflict", message, Value::Null)
    }

    /// The failure of an update that names no version. It names the resource in the place of the kind.
    pub(crate) fn without_version(name: &str) -> Self {
        let why = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
        let message = format!("{RESOURCE} {name:?} is invalid: {why}");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message, resource(name))
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message, Value::Null)
    }

    /// The failure of a body of which a part cannot be read.
    pub(crate) fn undecodable(part: impl Display, why: impl Display) -> Self {
        Self::bad_request(format!("cannot decode {part}: {why}"))
    }

    pub(crate) fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message, Value::Null)
    }

    /// A failure for which an API server has no reason.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message, Value::Null)
    }

    pub(crate) fn too_large(why: impl Display) -> Self {
        let message = format!("Request entity too large: {why}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message, Value::Null)
    }

    pub(crate) fn media_type(sent: &str) -> Self {
        let message = format!("this server cannot read {sent:?} here; send application/json");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message, Value::Null)
    }

    pub(crate) fn not_acceptable() -> Self {
        let message =
            "only the following media types are accepted: application/json, alone or as Table or PartialObjectMetadata";
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message, Value::Null)
    }

    pub(crate) fn no_path() -> Self {
        let message = "the server could not find the requested resource; it serves Leases only";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message, Value::Null)
    }

    pub(crate) fn no_method() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message, Value::Null)
    }

    pub(crate) fn forbidden(namespace: Option<&str>, may_read: bool) -> Self {
        let place = namespace.map_or("in all namespaces".to_owned(), |name| format!("in the namespace {name:?}"));
        let what = if may_read { "only allows to read Leases" } else { "does not allow Leases" };
        let message = format!("{RESOURCE} is forbidden: the token of this request {what} {place}");
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message, resource(""))
    }

    /// The failure of a write for which a namespace has no room.
    pub(crate) fn exceeded(namespace: &str, why: &str) -> Self {
        let message = format!("{RESOURCE} is forbidden: exceeded quota of the namespace {namespace:?}: {why}");
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message, resource(""))
    }

    pub(crate) fn no_impersonation() -> Self {
        let why = "this server knows no users whom another could act for; leave out --as and the headers Impersonate-*";
        Self::new(StatusCode::FORBIDDEN, "Forbidden", why, Value::Null)
    }

    /// The failure of one request too many of those that cost much. The client comes again.
    pub(crate) fn crowded(why: impl Into<String>) -> Self {
        let mut failure = Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", why, Value::Null);
        failure.retry_after = Some(Duration::from_secs(1));
        failure
    }

    /// The failure of a watch that begins too early, or of a listing that is gone. The client lists again.
    pub(crate) fn gone() -> Self {
        let message = "this server does not know the Leases of that version, or not any more; list again without it";
        Self::new(StatusCode::GONE, "Expired", message, Value::Null)
    }

    /// The failure of a read. A client that saw 404 here would create the Lease.
    pub(crate) fn unread(error: &StoreError) -> Self {
        Self::internal(with_causes(error))
    }

    /// The failure of a write that the store has refused for certain.
    pub(crate) fn refused(error: &StoreError) -> Self {
        if error.kind() != StoreErrorKind::Rejected {
            return Self::internal(with_causes(error));
        }
        let reason = "ServiceUnavailable";
        let mut failure = Self::new(StatusCode::SERVICE_UNAVAILABLE, reason, with_causes(error), Value::Null);
        failure.retry_after = Some(error.retry_after().unwrap_or(Duration::from_secs(1)));
        failure
    }

    /// The failure of a write whose outcome is unknown. After 503 or 504, some clients would send the same again at once.
    pub(crate) fn in_doubt(why: &str) -> Self {
        Self::internal(format!("{IN_DOUBT}: {why}; read it before the next write"))
    }

    /// The same failure of a patch: the body can be read, and what it makes of the Lease cannot.
    pub(crate) fn in_patch(mut self) -> Self {
        if self.status == StatusCode::BAD_REQUEST {
            (self.status, self.reason) = (StatusCode::UNPROCESSABLE_ENTITY, "Invalid");
        }
        self
    }

    /// Returns `true` if the client is not to blame.
    pub(crate) fn is_of_server(&self) -> bool {
        self.status.is_server_error()
    }

    /// Returns `true` if there is no room for a Lease.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.status == StatusCode::FORBIDDEN
    }

    /// Returns `true` if a write may have been committed.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.message.starts_with(IN_DOUBT)
    }

    /// Returns `true` if there is no such Lease.
    pub(crate) fn is_of_nothing(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The object of the kind `Status`.
    pub(crate) fn object(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
            "reason": self.reason, "code": self.status.as_u16(),
        });
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}

fn resource(name: &str) -> Value {
    details("leases", name)
}

fn details(kind: &str, name: &str) -> Value {
    json!({"name": name, "group": GROUP, "kind": kind})
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = (self.status, axum::Json(self.object())).into_response();
        if let Some(pause) = self.retry_after {
            let seconds = pause.as_secs().max(1);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
