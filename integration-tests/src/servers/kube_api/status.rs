//! The failures of an API server: objects of the kind `Status`.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

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

    pub(super) fn not_found(name: &str) -> Self {
        let message = format!("leases.coordination.k8s.io {name:?} not found");
        Self::new(StatusCode::NOT_FOUND, "NotFound", message, details("leases", name))
    }

    pub(super) fn no_namespace(name: &str) -> Self {
        let message = format!("namespaces {name:?} not found");
        Self::new(StatusCode::NOT_FOUND, "NotFound", message, json!({"name": name, "kind": "namespaces"}))
    }

    pub(super) fn exists(name: &str) -> Self {
        let message = format!("leases.coordination.k8s.io {name:?} already exists");
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message, details("leases", name))
    }

    pub(super) fn conflict(name: &str, why: &str) -> Self {
        Self::conflict_of("leases", name, why)
    }

    /// The failure of a deletion whose precondition does not hold. It names the kind in the place of the resource.
    pub(super) fn unmet(name: &str, why: &str) -> Self {
        Self::conflict_of("Lease", name, why)
    }

    fn conflict_of(kind: &str, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {kind}.coordination.k8s.io {name:?}: {why}");
        Self::new(StatusCode::CONFLICT, "Conflict", message, details(kind, name))
    }

    pub(super) fn invalid(name: &str, field: &str, why: &str) -> Self {
        Self::invalid_of("Lease", name, field, why)
    }

    /// The failure of an update that names no version. It names the resource in the place of the kind.
    pub(super) fn without_version(name: &str) -> Self {
        Self::invalid_of(
            "leases",
            name,
            "metadata.resourceVersion",
            "Invalid value: 0: must be specified for an update",
        )
    }

    fn invalid_of(kind: &str, name: &str, field: &str, why: &str) -> Self {
        let message = format!("{kind}.coordination.k8s.io {name:?} is invalid: {field}: {why}");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message, details(kind, name))
    }

    /// A failure for which an API server has no words of its own.
    pub(super) fn internal(message: &str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message.to_owned(), Value::Null)
    }

    pub(super) fn bad_request(message: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message.to_owned(), Value::Null)
    }
}

fn details(kind: &str, name: &str) -> Value {
    json!({"name": name, "group": "coordination.k8s.io", "kind": kind})
}

pub(super) fn forbidden(verb: &str) -> Failure {
    let message = format!("leases.coordination.k8s.io is forbidden: User \"tests\" cannot {verb} resource \"leases\"");
    Failure::new(StatusCode::FORBIDDEN, "Forbidden", message, details("leases", ""))
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
