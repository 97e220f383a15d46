//! The effect of a call, as far as the errors of `opendal` tell it.

use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_store_support::request::{
    NOT_FOUND_BY_ANOTHER, Operation, Verdict, Words, causes, failed, is_refusal,
};
use opendal::{Error, ErrorKind};

const NO_BUCKET: Verdict =
    (StoreErrorKind::Fatal, "there is no such bucket or container; create it, or correct its name, region or endpoint");

/// The message of a request without credentials, whether or not they are ever there.
const NOT_SIGNED: &str = "signing http request";

/// Returns `true` if there is no object. A missing bucket or container is an error.
pub(crate) fn is_absent(error: &Error) -> bool {
    error.kind() == ErrorKind::NotFound && !names_no_bucket(error)
}

/// A bucket or container is distinguished from an object by the code in the answer, which is in the text.
fn names_no_bucket(error: &Error) -> bool {
    ["NoSuchBucket", "ContainerNotFound"].iter().any(|code| error.message().contains(&format!("code: \"{code}\"")))
}

fn verdict(operation: Operation, error: &Error) -> Verdict {
    use StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected};

    match error.kind() {
        _ if names_no_bucket(error) => NO_BUCKET,
        ErrorKind::NotFound if operation == Operation::Update => (Conflict, "it was deleted meanwhile"),
        ErrorKind::NotFound => NOT_FOUND_BY_ANOTHER,
        ErrorKind::ConditionNotMatch | ErrorKind::AlreadyExists | ErrorKind::Conflict if operation.is_write() => {
            (Conflict, "it was changed or created meanwhile, or this write was repeated by a layer of the operator")
        }
        ErrorKind::ConditionNotMatch | ErrorKind::AlreadyExists | ErrorKind::Conflict => {
            (Rejected, "another request got in between")
        }
        ErrorKind::Unsupported => (Fatal, "the service cannot do this; use another service, such as s3, azblob or oss"),
        ErrorKind::ConfigInvalid => (Fatal, "the operator's configuration is wrong; correct it"),
        ErrorKind::PermissionDenied => {
            (Fatal, "access denied; check the credentials, and their permissions to read, write, list and delete")
        }
        ErrorKind::IsADirectory | ErrorKind::NotADirectory => {
            (Fatal, "a folder is in the way; choose a key that is no folder of other objects")
        }
        // A layer may have sent a write before, and that attempt may have been committed.
        _ if error.message() == NOT_SIGNED => {
            (Ambiguous, "there are no credentials now; check the variables and the source that give them")
        }
        ErrorKind::RateLimited if operation.is_write() => (Ambiguous, "throttled"),
        ErrorKind::RateLimited => (Rejected, "throttled"),
        _ => (Ambiguous, "the request failed, and its effect is unknown; check the service and the network"),
    }
}

/// Converts an error about `object` into a [`StoreError`].
pub(crate) fn explain(operation: Operation, object: &str, error: &Error) -> StoreError {
    failed(object, verdict(operation, error), words(error))
}

/// Returns the text of the error without its context, which has the whole request with its query. Of the causes, it has the one
/// that somebody can mend.
pub(crate) fn words(error: &Error) -> Option<Words> {
    let refusal = causes(error).map(ToString::to_string).find(|cause| is_refusal(cause));
    let refusal = refusal.map(|cause| format!(": {cause}")).unwrap_or_default();
    Words::of(&format!("{}: {}{refusal}", error.kind(), error.message()))
}
