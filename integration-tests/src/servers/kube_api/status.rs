//! The failures of an API server: objects of the kind `Status`.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::kinds::{Flaw, Kind};

/// A failure, in the words of an API server.
#[derive(Debug)]
pub(super) struct Failure {
    status: StatusCode,
    reason: &'static str,
    message: String,
    details: Value,
}

impl Failure {
    fn new(status: StatusCode, reason: &'static str, message: String, details: Value) -> Self {
        Self { status, reason, message, details }
    }

    pub(super) fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {name:?} not found", kind.resource());
        Self::new(StatusCode::NOT_FOUND, "NotFound", message, object(kind, name))
    }

    pub(super) fn no_namespace(name: &str) -> Self {
        let message = format!("namespaces {name:?} not found");
        Self::new(StatusCode::NOT_FOUND, "NotFound", message, json!({"name": name, "kind": "namespaces"}))
    }

    pub(super) fn exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", kind.resource());
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message, object(kind, name))
    }

    pub(super) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", kind.resource());
        Self::new(StatusCode::CONFLICT, "Conflict", message, object(kind, name))
    }

    /// The failure of a deletion whose precondition does not hold. It names the kind in the place of the resource.
    pub(super) fn unmet(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {}.{} {name:?}: {why}", kind.name, kind.group);
        Self::new(StatusCode::CONFLICT, "Conflict", message, details(kind.group, kind.name, name))
    }

    pub(super) fn invalid(kind: &Kind, name: &str, field: &str, why: &str) -> Self {
        let message = format!("{}.{} {name:?} is invalid: {field}: {why}", kind.name, kind.group);
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message, details(kind.group, kind.name, name))
    }

    /// The failure of an object that has a flaw.
    pub(super) fn of(kind: &Kind, name: &str, flaw: Flaw) -> Self {
        match flaw {
            Flaw::Undecodable { field } => Self::bad_request(&format!("cannot decode {field}")),
            Flaw::Invalid { field, why } => Self::invalid(kind, name, &field, &why),
        }
    }

    /// The failure of an update that names no version. It names the resource in the place of the kind.
    pub(super) fn without_version(kind: &Kind, name: &str) -> Self {
        let why = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
        let message = format!("{} {name:?} is invalid: {why}", kind.resource());
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message, object(kind, name))
    }

    /// A failure for which an API server has no words of its own.
    pub(super) fn internal(message: &str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message.to_owned(), Value::Null)
    }

    pub(super) fn bad_request(message: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message.to_owned(), Value::Null)
    }
}

fn object(kind: &Kind, name: &str) -> Value {
    details(kind.group, kind.plural, name)
}

fn details(group: &str, kind: &str, name: &str) -> Value {
    json!({"name": name, "group": group, "kind": kind})
}

pub(super) fn forbidden(kind: &Kind, verb: &str) -> Failure {
    let (resource, plural) = (kind.resource(), kind.plural);
    let message = format!("{resource} is forbidden: User \"tests\" cannot {verb} resource \"{plural}\"");
    Failure::new(StatusCode::FORBIDDEN, "Forbidden", message, object(kind, ""))
}

/// The answer to a request that this server does not know, PATCH among them: no election sends it.
pub(super) fn not_served() -> Failure {
    let message = "the server does not allow this method on the requested resource".to_owned();
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message, Value::Null)
}

pub(super) fn json(body: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(body).map_err(|error| Failure::bad_request(&error.to_string()))
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
            "reason": self.reason, "details": self.details, "code": self.status.as_u16(),
        });
        (self.status, axum::Json(status)).into_response()
    }
}
