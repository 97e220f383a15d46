//! The effect of a request, as the answers of an API server and the client's failures describe it.

use hyper_util::client::legacy;
use kube::client::AuthError;
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_store_support::request::answer::{self, BROKEN_CONNECTION};
use leaderelection_store_support::request::{NOT_FOUND_BY_ANOTHER, Operation, Verdict, Words, causes, failed};
use serde::Deserialize;

use crate::client::NoClient;
use crate::command::Problem;

/// The message of an API server about a failure: an object of the kind `Status`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Said {
    pub(crate) message: String,
    reason: String,
    details: Details,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    /// The resource that the failure is about, such as `leases` or `namespaces`.
    kind: String,
}

impl Said {
    pub(crate) fn of(text: &[u8]) -> Self {
        serde_json::from_slice(text).unwrap_or_default()
    }

    pub(crate) fn is_about(&self, resource: &str) -> bool {
        self.reason == "NotFound" && self.details.kind == resource
    }
}

/// Returns the meaning of an answer.
///
/// The status codes are listed at
/// <https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#http-status-codes>.
fn answered(operation: Operation, status: u16, said: &Said) -> Verdict {
    use Operation::{Create, Delete, Get, Update};
    use StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected};

    match status {
        409 | 412 if operation.is_write() => {
            (Conflict, "it was changed, created or deleted meanwhile by another writer")
        }
        409 => (Rejected, "another request got in between"),

        404 if said.is_about("namespaces") => (Fatal, "there is no such namespace; create it, or correct its name"),
        404 if said.is_about("leases") && matches!(operation, Update | Delete) => {
            (Conflict, "it was deleted meanwhile")
        }
        404 => NOT_FOUND_BY_ANOTHER,

        422 => {
            (Fatal, "the API server finds the Lease invalid; see what it says, and change the setting that it names")
        }
        401 => (Fatal, "access denied because the credentials are wrong or have expired; renew them"),
        403 => match operation {
            Get => (Fatal, "access denied; allow the verb get on leases in the API group coordination.k8s.io"),
            Create => (Fatal, "access denied; allow the verb create on leases in the API group coordination.k8s.io"),
            Update => (Fatal, "access denied; allow the verb update on leases in the API group coordination.k8s.io"),
            Delete => (Fatal, "access denied; allow the verb delete on leases in the API group coordination.k8s.io"),
            _ => (Fatal, "access denied; allow the verb list on leases in the API group coordination.k8s.io"),
        },
        // The API server refuses what it cannot queue before any effect:
        // https://kubernetes.io/docs/concepts/cluster-administration/flow-control/
        429 => (Rejected, "throttled"),
        408 => (Ambiguous, "the API server timed out; try again later, and check its log"),
        300..=399 => (Fatal, "the API server is elsewhere; check the address in the kubeconfig"),
        400..=499 => (Fatal, "the API server refused the request"),
        _ => (Ambiguous, "the API server failed; try again later, and check its log"),
    }
}

/// Converts an answer that is no success into an error.
pub(crate) fn explain(operation: Operation, object: &str, status: u16, text: &[u8]) -> StoreError {
    let said = Said::of(text);
    let words =
        if said.message.is_empty() { Words::of(&String::from_utf8_lossy(text)) } else { Words::of(&said.message) };
    failed(object, answer::with_code(answered(operation, status, &said), status, &said.reason), words)
}

/// Converts the client's error about a request without an answer.
pub(crate) fn unanswered(object: &str, error: &kube::Error) -> StoreError {
    let verdict = match error {
        kube::Error::HttpError(_) | kube::Error::BuildRequest(_) => {
            (StoreErrorKind::Fatal, "the request cannot be built; check the names of the namespace and of the Lease")
        }
        // There was no connection, so nothing was sent.
        error if causes(error).any(|cause| cause.downcast_ref().is_some_and(legacy::Error::is_connect)) => (
            StoreErrorKind::Rejected,
            "cannot connect; check the network, and if it has never answered, the address and the certificate in the kubeconfig",
        ),
        _ => BROKEN_CONNECTION,
    };
    failed(object, verdict, Words::of_error(error))
}

/// The error of a request for which there is no token.
pub(crate) fn without_token(object: &str, problem: &Problem) -> StoreError {
    let advice =
        "cannot get a token; the request was not sent; check the credentials in the kubeconfig, and the network";
    failed(object, (problem.kind, advice), Words::of_error(problem))
}

/// The error of a configuration from which no client can be made.
pub(crate) fn no_client(namespace: &str, error: &NoClient) -> StoreError {
    let advice = "cannot create a client; check the kubeconfig, or the service account";
    let words = match error {
        NoClient::Kube(kube::Error::Auth(error)) => Words::of(&of_auth(error)),
        NoClient::Kube(error) => Words::of_error(error),
        error => Words::of_error(error),
    };
    // A namespace has at most 63 characters. A kubeconfig may give anything else, such as the rest of itself by a misplaced quote.
    let known: String = namespace.chars().take(63).collect();
    let cut = if known.len() < namespace.len() { "..." } else { "" };
    failed(&format!("lease://{known}{cut}"), (StoreErrorKind::Fatal, advice), words)
}

/// The words about a token that could not be got. kube's own repeat the environment of the command that the kubeconfig names,
/// or what the command has said: both may be secrets.
pub(crate) fn of_auth(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecRun { out, .. } => {
            format!("the command that the kubeconfig names for the user has failed ({}); run it by hand", out.status)
        }
        AuthError::AuthExecParse(_) => {
            "the command that the kubeconfig names for the user prints no ExecCredential; run it by hand".to_owned()
        }
        error => Words::of_error(error).map(|words| words.to_string()).unwrap_or_default(),
    }
}
