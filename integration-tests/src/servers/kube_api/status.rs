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

    pub(super) fn not_found(plural: &str, name: &str) -> Self {
        let message = format!("{plural} {name:?} not found");
        Self::new(StatusCode::NOT_FOUND, "NotFound", message, json!({"name": name, "kind": plural}))
    }

    pub(super) fn exists(plural: &str, name: &str) -> Self {
        let message = format!("{plural} {name:?} already exists");
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message, json!({"name": name, "kind": plural}))
    }

    pub(super) fn conflict(plural: &str, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        let message = format!("Operation cannot be fulfilled on {plural} {name:?}: {why}");
        Self::new(StatusCode::CONFLICT, "Conflict", message, json!({"name": name, "kind": plural}))
    }

    /// A failure for which an API server has no words of its own.
    pub(super) fn internal(message: &str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message.to_owned(), Value::Null)
    }

    pub(super) fn bad_request(message: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message.to_owned(), Value::Null)
    }
}

pub(super) fn forbidden(plural: &str, verb: &str) -> Failure {
    let message = format!("{plural} is forbidden: User \"tests\" cannot {verb} resource \"{plural}\"");
    Failure::new(StatusCode::FORBIDDEN, "Forbidden", message, json!({"kind": plural}))
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
