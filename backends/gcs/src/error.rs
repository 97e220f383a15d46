//! The effect of a request, as Google's answers and the client's failures describe it.

use std::iter;

use google_cloud_gax::error::rpc::{Code, StatusDetails};
use google_cloud_storage::Error;
use google_cloud_storage::error::{ReadError, WriteError};
use leaderelection::implement::Version;
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_store_support::request::answer::{self, BROKEN_CONNECTION, UNREADABLE_ANSWER};
use leaderelection_store_support::request::{self, NOT_FOUND_BY_ANOTHER, Operation, Verdict, Words, causes, failed};
use leaderelection_store_support::variable;

const DAMAGED: Verdict = (
    StoreErrorKind::Ambiguous,
    "the content does not have the checksum that the store announced; check the endpoint, and the proxies on the way",
);

/// Returns the meaning of an answer, from its HTTP status and its text.
///
/// The status codes are listed at <https://cloud.google.com/storage/docs/json_api/v1/status-codes>.
/// Preconditions add the codes at
/// <https://cloud.google.com/storage/docs/request-preconditions>.
fn answered(operation: Operation, status: u16, text: &str) -> Verdict {
    use Operation::{Delete, Get, List, Update};
    use StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected};

    // Only the text distinguishes a missing object from a missing bucket.
    let (no_bucket, no_object) = (names_no_bucket(text), names_no_object(text));
    // Some limits are reported as 403: https://cloud.google.com/storage/docs/json_api/v1/status-codes#403-forbidden
    let text = text.to_ascii_lowercase();
    let throttled = text.contains("ratelimit") || text.contains("rate limit");
    match status {
        412 if operation.is_write() => (Conflict, "it was changed, created or deleted meanwhile"),
        409 if operation.is_write() => (Conflict, "another writer got in between"),
        409 => (Rejected, "another request got in between"),

        404 if no_bucket => (Fatal, "there is no such bucket; create it, or correct its name"),
        404 if no_object && matches!(operation, Update | Delete) => (Conflict, "it was deleted meanwhile"),
        404 if no_object => (Fatal, "not found; check the bucket's name and the endpoint"),
        404 => NOT_FOUND_BY_ANOTHER,

        // An object accepts about one write per second: https://cloud.google.com/storage/quotas#objects
        429 => (Rejected, "throttled; an object takes about one write per second"),
        403 if throttled => (Rejected, "throttled; an object takes about one write per second"),
        // Without storage.objects.list, Google answers 403 for a missing object too, so that a client cannot
        // guess names.
        401 | 403 if operation == Get => (
            Fatal,
            "access denied; allow storage.objects.get, and storage.objects.list, without which a missing object looks denied",
        ),
        401 | 403 if operation == List => (Fatal, "access denied; allow storage.objects.list"),
        401 | 403 if operation == Delete => (Fatal, "access denied; allow storage.objects.delete"),
        // Overwriting counts as deleting: https://cloud.google.com/storage/docs/access-control/iam-permissions
        401 | 403 => (Fatal, "access denied; allow storage.objects.create and, to overwrite, storage.objects.delete"),

        408 => (Ambiguous, "the service timed out; try again later, and check its status page"),
        300..=399 => {
            (Fatal, "the bucket is elsewhere; check the endpoint (endpoint= in the URL, or STORAGE_EMULATOR_HOST)")
        }
        400..=499 => (Fatal, "the service refused the request"),
        _ => (Ambiguous, "the service failed; try again later, and check its status page"),
    }
}

fn names_no_bucket(text: &str) -> bool {
    text.contains("bucket does not exist")
}

/// Returns `true` if a 404 is about an object. One with another text may be the answer of a gateway.
///
/// Google says "No such object: bucket/name". Google's own testbench says "bucket/name does not exist", and
/// fake-gcs-server nothing but "Not Found".
fn names_no_object(text: &str) -> bool {
    let is_page = text.trim_start().starts_with('<');
    !is_page && (text.contains("No such object") || text.contains("does not exist") || text.trim() == "Not Found")
}

/// Returns the HTTP status that Google documents for a gRPC code, or `None` for a code that does not tell the
/// effect.
///
/// <https://cloud.google.com/apis/design/errors#handling_errors>
fn documented_status(code: Code) -> Option<u16> {
    Some(match code {
        Code::FailedPrecondition => 412,
        Code::NotFound => 404,
        Code::Aborted | Code::AlreadyExists => 409,
        Code::ResourceExhausted => 429,
        Code::PermissionDenied => 403,
        Code::Unauthenticated => 401,
        Code::InvalidArgument | Code::OutOfRange | Code::Unimplemented => 400,
        _ => return None,
    })
}

fn status(error: &Error) -> Option<u16> {
    error.http_status_code().or_else(|| documented_status(error.status()?.code))
}

/// Returns the service's text about its answer.
fn text(error: &Error) -> String {
    if let Some(payload) = error.http_payload() {
        return String::from_utf8_lossy(payload).into_owned();
    }
    // The client has already parsed the text and separated the reason from the message.
    let Some(status) = error.status() else { return String::new() };
    let reasons = status.details.iter().filter_map(|detail| match detail {
        StatusDetails::ErrorInfo(info) => Some(info.reason.as_str()),
        _ => None,
    });
    iter::once(status.message.as_str()).chain(reasons).collect::<Vec<_>>().join(" ")
}

/// Returns the known effect of a request whose answer is missing or unreadable: a request that was never sent
/// has none.
fn unanswered(error: &Error) -> Verdict {
    if error.is_connect() {
        (
            StoreErrorKind::Rejected,
            "cannot connect; check the network, and if it has never answered, the endpoint (endpoint= in the URL, or STORAGE_EMULATOR_HOST)",
        )
    } else if error.is_authentication() {
        let advice = match variable("GOOGLE_APPLICATION_CREDENTIALS") {
            Some(_) => "cannot get a token; the request was not sent; check the credentials and the network",
            None => {
                "cannot get a token; the request was not sent; run gcloud auth application-default login, or set \
                 GOOGLE_APPLICATION_CREDENTIALS, or check this machine's service account and the network"
            }
        };
        (StoreErrorKind::Rejected, advice)
    } else if error.is_binding() {
        (StoreErrorKind::Fatal, "the request cannot be built; check the bucket's and the object's name")
    } else if is_checksum_mismatch(error) {
        DAMAGED
    } else if error.is_deserialization() {
        UNREADABLE_ANSWER
    } else {
        BROKEN_CONNECTION
    }
}

fn is_checksum_mismatch(error: &Error) -> bool {
    causes(error).any(|cause| {
        matches!(cause.downcast_ref(), Some(WriteError::ChecksumMismatch { .. }))
            || matches!(cause.downcast_ref(), Some(ReadError::ChecksumMismatch(_)))
    })
}

/// Returns `true` if a request found no object. A missing bucket is an error, and so is a 404 that is not Google's.
pub(crate) fn is_absent(error: &Error) -> bool {
    let text = text(error);
    status(error) == Some(404) && names_no_object(&text) && !names_no_bucket(&text)
}

/// Converts the client's error in the middle of a body into ours.
pub(crate) fn broke_off(object: &str, error: &Error) -> StoreError {
    if is_checksum_mismatch(error) {
        return failed(object, DAMAGED, None);
    }
    request::broke_off(object, Words::of_error(error))
}

/// Returns `true` if other credentials of the same source may be accepted.
pub(crate) fn doubts_credentials(error: &Error) -> bool {
    status(error) == Some(401)
}

/// Converts the client's error about `object` into a [`StoreError`]. `is_found_anew` says whether the next request has other
/// credentials.
pub(crate) fn explain(operation: Operation, object: &str, error: Error, is_found_anew: bool) -> StoreError {
    let (status, code) = (status(&error), error.status().map(|status| status.code));
    let retry_after = error.http_headers().and_then(|headers| headers.get("retry-after")?.to_str().ok());
    let (kind, advice) = match (status, code) {
        (Some(status), _) if is_found_anew => answer::with_code(answer::LOADED_ANEW, status, ""),
        (Some(status), _) => answer::with_code(answered(operation, status, &text(&error)), status, ""),
        (None, Some(code)) => {
            let advice = format!("the service failed ({code}); try again later, and check its status page");
            (StoreErrorKind::Ambiguous, advice)
        }
        (None, None) => {
            let (kind, advice) = unanswered(&error);
            (kind, advice.to_owned())
        }
    };
    failed(object, (kind, advice), said(&error)).with_retry_after(retry_after.and_then(answer::retry_after))
}

/// Returns the message of the service, or the text of the client's error if the service did not answer.
fn said(error: &Error) -> Option<Words> {
    match (error.status(), error.http_payload()) {
        (Some(status), _) => Words::of(&status.message),
        (None, Some(payload)) => Words::of(&String::from_utf8_lossy(payload)),
        (None, None) if error.is_authentication() => about_a_token(error),
        (None, None) => Words::of_error(error),
    }
}

/// What the client adds to the cause of a missing token, and what our advice says already.
const AROUND_A_CAUSE: [&str; 3] = [
    "cannot create the authentication headers ",
    "but future attempts may succeed",
    "and future attempts will not succeed",
];

/// Returns the first sentence of the client's error and of each cause, without repetitions.
fn about_a_token(error: &Error) -> Option<Words> {
    let mut text = String::new();
    for cause in causes(error) {
        let words = AROUND_A_CAUSE.iter().fold(cause.to_string(), |words, around| words.replace(around, ""));
        let first = words.split(". ").next().unwrap_or_default().trim_end_matches([' ', '.']);
        if !text.contains(first) {
            text = if text.is_empty() { first.to_owned() } else { format!("{text}: {first}") };
        }
    }
    Words::of(&text)
}

/// Returns the version in a successful answer, or an error of `kind` if the answer has none.
pub(crate) fn version(generation: i64, kind: StoreErrorKind, object: &str) -> Result<Version, StoreError> {
    if generation > 0 {
        return Ok(Version::new(generation.to_string()));
    }
    Err(request::without_version(kind, object, "generation"))
}
