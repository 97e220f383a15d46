//! The effect of a request, as Azure's answers and the SDK's failures describe it.

use std::time::Duration;

use azure_core::error::{Error, ErrorKind};
use azure_core::http::headers::Headers;
use azure_core::http::{Etag, RawResponse};
use leaderelection::implement::Version;
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_store_support::request::answer::{self, BROKEN_CONNECTION, UNREADABLE_ANSWER};
use leaderelection_store_support::request::{self, NOT_FOUND_BY_ANOTHER, Operation, Verdict, Words, failed};

use crate::tokens::LoadedAnew;

/// The error of a store that cannot be created from its settings.
pub(crate) fn misconfigured(message: String) -> StoreError {
    StoreError::new(StoreErrorKind::Fatal, message)
}

/// The beginning of the error of an environment that names no identity, on a machine that has none. The error of a request
/// keeps only the text of this error.
pub(crate) const NO_LOGIN: &str = "neither Azure's tools nor this machine's identity gave one";

/// The code of a 404 about a blob. Without it, a 404 may be the answer of a gateway.
const NO_BLOB: &str = "BlobNotFound";

/// Returns the meaning of an answer, from its HTTP status and Azure's error code.
///
/// The error codes are listed at
/// <https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes> and
/// <https://learn.microsoft.com/rest/api/storageservices/common-rest-api-error-codes>. Conditional requests add
/// the codes at
/// <https://learn.microsoft.com/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations>.
fn answered(operation: Operation, status: u16, code: &str) -> Verdict {
    use Operation::{Delete, Get, List, Update};
    use StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected};

    match (status, code) {
        // Another program holds an Azure lease on the blob. This library does not use Azure leases, and no
        // retry helps.
        (412 | 409, "LeaseIdMissing" | "LeaseAlreadyPresent") => {
            (Fatal, "an Azure lease on the blob forbids to write it; break that lease, nothing was written")
        }
        (412, _) if operation.is_write() => (Conflict, "it was changed, created or deleted meanwhile"),
        // A refused create has this code; every other refused condition has status 412.
        (409, "BlobAlreadyExists") if operation.is_write() => (Conflict, "it was created meanwhile"),
        (409, "ContainerBeingDeleted") => {
            (Fatal, "the container is being deleted; wait until it is gone, then create it anew")
        }
        (409, "PublicAccessNotPermitted") => (Fatal, "the account serves nobody without credentials; give some"),
        (409, "BlobImmutableDueToPolicy") => {
            (Fatal, "a policy makes the blob immutable; choose a container without one")
        }
        (409, "InvalidBlobType") => (Fatal, "it is a page or append blob, so it is not ours; choose another key"),
        (409, "BlobArchived" | "BlobBeingRehydrated") => {
            (Fatal, "it is in the archive tier, so it is not ours; choose another key")
        }
        (409, "SnapshotsPresent") => (Fatal, "it has snapshots; delete those first"),
        (409, _) if operation.is_write() => (Conflict, "another writer got in between"),
        (409, _) => (Rejected, "another request got in between"),

        (404, "ContainerNotFound") => (Fatal, "there is no such container; create it, or correct its name"),
        // For a missing blob, either the emulator or the service answers 412 and the other one answers 404.
        (404, NO_BLOB) if matches!(operation, Update | Delete) => (Conflict, "it was deleted meanwhile"),
        (404, NO_BLOB) => (Fatal, "not found; check the account's and the container's name"),
        // A private object looks absent to a request without credentials.
        (404, "ResourceNotFound") => (Fatal, "not found, or hidden from requests without credentials; give some"),
        (404, _) => NOT_FOUND_BY_ANOTHER,

        (401 | 403, "AuthenticationFailed" | "InvalidAuthenticationInfo") => (
            Fatal,
            "refused because the key, SAS or token is wrong or has expired, or this machine's clock is wrong; replace a key or SAS and restart this process, or set the clock",
        ),
        (401 | 403, "KeyBasedAuthenticationNotPermitted") => {
            (Fatal, "the account permits no keys; use Entra ID or a user delegation SAS")
        }
        (401 | 403, "AuthorizationFailure") => {
            (Fatal, "access denied; check the key or SAS, and the account's network rules")
        }
        (401 | 403, _) if operation == Get => (Fatal, "access denied; allow to read blobs"),
        (401 | 403, _) if operation == Delete => (Fatal, "access denied; allow to delete blobs"),
        (401 | 403, _) if operation == List => (Fatal, "access denied; allow to list blobs"),
        (401 | 403, _) => (Fatal, "access denied; allow to create and write blobs"),

        // ServerBusy is sent before any effect. A bare 503 may come from a proxy after the service has written.
        (429, _) | (503, "ServerBusy") => {
            (Rejected, "throttled; if this lasts, raise the retry period, or spread the locks over several accounts")
        }
        (408, _) | (_, "OperationTimedOut") => {
            (Ambiguous, "the service timed out; try again later, and check its status page")
        }
        (300..=399, _) => (Fatal, "the container is elsewhere; use the URL of the account's primary endpoint"),
        (400..=499, _) => (Fatal, "the service refused the request"),
        (200..=299, _) => UNREADABLE_ANSWER,
        _ => (Ambiguous, "the service failed; try again later, and check its status page"),
    }
}

/// Returns the known effect of a request without an answer: a request that was never sent has none.
fn unanswered(error: &Error) -> Verdict {
    match error.kind() {
        ErrorKind::Connection => (
            StoreErrorKind::Rejected,
            "cannot connect; check the network, and if it has never answered, the account's name and the endpoint",
        ),
        ErrorKind::Credential if error.to_string().starts_with(NO_LOGIN) => (
            StoreErrorKind::Rejected,
            "cannot get a token; the request was not sent; run az login, or set AZURE_STORAGE_CONNECTION_STRING, or \
             AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET",
        ),
        ErrorKind::Credential => (
            StoreErrorKind::Rejected,
            "cannot get a token; the request was not sent; check the credentials and the network",
        ),
        ErrorKind::Io => BROKEN_CONNECTION,
        ErrorKind::DataConversion => UNREADABLE_ANSWER,
        _ => (StoreErrorKind::Ambiguous, "the request failed; the cause says more"),
    }
}

/// Returns `true` if a request found no blob. A missing container is an error.
pub(crate) fn is_absent(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::HttpResponse { status, error_code, .. }
        if u16::from(*status) == 404 && error_code.as_deref() == Some(NO_BLOB))
}

/// Converts the SDK's error about `object` into a [`StoreError`].
///
/// Only the status and the code of an answer are kept: a service that refuses a signature repeats the signature
/// and the signed text.
pub(crate) fn explain(operation: Operation, object: &str, error: Error) -> StoreError {
    if let ErrorKind::HttpResponse { status, error_code, raw_response } = error.kind() {
        let status = u16::from(*status);
        let headers = raw_response.as_deref().map(RawResponse::headers);
        let code = error_code.as_deref().or_else(|| headers?.get_optional_str(&"x-ms-error-code".into()));
        // The SDK repeats the status where the answer has no code.
        let code = code.filter(|code| *code != status.to_string()).unwrap_or_default();
        let verdict = answer::with_code(answered(operation, status, code), status, code);
        return failed(object, verdict, None).with_retry_after(headers.and_then(retry_after));
    }
    if error.downcast_ref::<LoadedAnew>().is_some() {
        return failed(object, answer::with_code(answer::LOADED_ANEW, 401, ""), None);
    }
    failed(object, unanswered(&error), words(error))
}

/// Returns the text of the SDK's error without the URL of the request, which may contain a SAS.
pub(crate) fn words(error: Error) -> Option<Words> {
    match error.into_downcast::<reqwest::Error>() {
        Ok(error) => Words::of_error(&error.without_url()),
        // An error about a token needs its message; that message is about the token's server.
        Err(error) => Words::of(&error.to_string()),
    }
}

/// Returns the version in a successful answer, or an error of `kind` if the answer has none.
pub(crate) fn version(etag: Option<Etag>, kind: StoreErrorKind, object: &str) -> Result<Version, StoreError> {
    etag.map(|etag| Version::new(String::from(etag))).ok_or_else(|| request::without_version(kind, object, "ETag"))
}

fn retry_after(headers: &Headers) -> Option<Duration> {
    let header = |name: &'static str| headers.get_optional_str(&name.into());
    let millis = header("x-ms-retry-after-ms").and_then(|value| value.trim().parse().ok());
    millis.map(Duration::from_millis).or_else(|| header("retry-after").and_then(answer::retry_after))
}
