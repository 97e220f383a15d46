//! The effect of a request, as S3's answers and the SDK's failures describe it.

use std::borrow::Cow;
use std::error::Error as StdError;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::DispatchFailure;
use hyper_util::client::legacy;
use leaderelection::causes::with_causes;
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_store_support::request::answer::{self, BROKEN_CONNECTION, UNREADABLE_ANSWER};
use leaderelection_store_support::request::{NOT_FOUND_BY_ANOTHER, Operation, Verdict, Words, causes, failed};

use crate::environment;
use crate::identity::Unloaded;

/// The code of a 404 about an object. Without it, a 404 may be the answer of a gateway.
const NO_OBJECT: &str = "NoSuchKey";

/// More bytes than the name of any region has.
const LONGEST_REGION: usize = 40;

const ELSEWHERE: Verdict = (
    StoreErrorKind::Fatal,
    "the bucket is elsewhere; set the region (AWS_REGION, or region= in the URL) and the endpoint (AWS_ENDPOINT_URL, or endpoint=) to \
     the bucket's",
);

/// Returns the meaning of an answer, from its HTTP status and S3's error code.
///
/// The error codes are listed at <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>.
/// Conditional requests add the codes at
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html> and
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-deletes.html>.
fn answered(operation: Operation, status: u16, code: &str) -> Verdict {
    use Operation::{Delete, Get, List, Session, Update};
    use StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected};

    match (status, code) {
        (412, _) if operation.is_write() => (Conflict, "it was changed or created meanwhile"),
        // Two conditional writes ran at the same time. This one wrote nothing, and the other one may have
        // succeeded.
        (409, _) if operation.is_write() => (Conflict, "another writer got in between"),
        (409, _) => (Rejected, "another request got in between"),

        (404, "NoSuchBucket") => (Fatal, "there is no such bucket; create it, or correct its name, region or endpoint"),
        // S3 answers 404 instead of 412 if the object of an `If-Match` no longer exists.
        (404, NO_OBJECT) if matches!(operation, Update | Delete) => (Conflict, "it was deleted meanwhile"),
        (404, NO_OBJECT) => (Fatal, "not found; check the bucket's name and the endpoint"),
        (404, _) => NOT_FOUND_BY_ANOTHER,

        (401 | 403, "RequestTimeTooSkewed") => (Fatal, "refused because this machine's clock is wrong; set it"),
        (401 | 403, "InvalidAccessKeyId" | "SignatureDoesNotMatch") => {
            (Fatal, "refused because the credentials are wrong; check the access key, its secret and the region")
        }
        (400 | 401 | 403, code) if is_about_token(code) => (
            Fatal,
            "refused because the credentials have expired; renew them, and restart this process if its variables have them",
        ),
        (401 | 403, _) if operation == Session => (Fatal, "access denied; allow s3express:CreateSession on the bucket"),
        // Without s3:ListBucket, S3 answers 403 for a missing object too, so that a client cannot guess keys:
        // https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
        (401 | 403, _) if operation == Get => {
            (Fatal, "access denied; allow s3:GetObject, and s3:ListBucket, without which a missing object looks denied")
        }
        (401 | 403, _) if operation == Delete => (Fatal, "access denied; allow s3:DeleteObject and s3:GetObject"),
        (401 | 403, _) if operation == List => (Fatal, "access denied; allow s3:ListBucket"),
        (401 | 403, _) => (Fatal, "access denied; allow s3:PutObject and, for conditional updates, s3:GetObject"),

        // SlowDown is sent before any effect. A bare 503 may come from a proxy after the store has written.
        (429, _) | (503, "SlowDown") => {
            (Rejected, "throttled; if this lasts, raise the retry period, or spread the locks over several prefixes")
        }
        // S3 reports a request that stalled in transit with status 400.
        (400, "RequestTimeout") | (408, _) => {
            (Ambiguous, "the store timed out; try again later, and check its log or its status page")
        }
        (501, _) if operation == Delete => {
            (Fatal, "the store does not support conditional deletions, which no election needs")
        }
        (501, _) => (Fatal, "the store does not support conditional requests; use one that does"),
        (300..=399, _) | (400, "AuthorizationHeaderMalformed") => ELSEWHERE,
        (400..=499, _) => (Fatal, "the store refused the request"),
        (200..=299, _) => UNREADABLE_ANSWER,
        _ => (Ambiguous, "the store failed; try again later, and check its log or its status page"),
    }
}

/// Returns the region that S3 names when a bucket is in another one. A server may say anything here, so only a name is kept.
fn bucket_region(answer: &HttpResponse) -> Option<&str> {
    let is_name = |name: &&str| {
        let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !name.is_empty() && name.len() <= LONGEST_REGION && name.bytes().all(is_part)
    };
    answer.headers().get("x-amz-bucket-region").filter(is_name)
}

/// Returns `true` for the codes of a temporary key whose time is over, as Amazon's services and those of others spell them.
fn is_about_token(code: &str) -> bool {
    matches!(
        code,
        "ExpiredToken" | "ExpiredTokenException" | "InvalidToken" | "InvalidTokenId" | "TokenRefreshRequired"
    )
}

/// Returns `true` if other credentials of the same source may be accepted. A missing permission is not fixed by them.
pub(crate) fn doubts_credentials<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    told(error).is_some_and(|(status, code)| match code {
        "InvalidAccessKeyId" | "SignatureDoesNotMatch" => true,
        code => status == 401 || is_about_token(code),
    })
}

/// Returns the meaning of an answer to a request that a session has signed, if the session is the reason. The user's own
/// credentials have signed nothing but the opening of the session.
fn answered_to_session(status: u16, code: &str) -> Option<Verdict> {
    match (status, code) {
        (400 | 401 | 403, code) if is_about_token(code) || code == "InvalidAccessKeyId" => {
            Some((StoreErrorKind::Rejected, "the store has forgotten the session; a later request opens another"))
        }
        (401 | 403, code) if code != "RequestTimeTooSkewed" => Some((
            StoreErrorKind::Fatal,
            "access denied; allow s3express:CreateSession on the bucket, to read and to write",
        )),
        _ => None,
    }
}

/// Returns the status that S3 documents for an error code, or `None` for a code that does not tell the effect.
/// S3 can send such a code with status 200.
///
/// A store that fails after it has sent the status line can only report the failure in the body:
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html>.
fn documented_status(code: &str) -> Option<u16> {
    Some(match code {
        "PreconditionFailed" => 412,
        "ConditionalRequestConflict" | "OperationAborted" => 409,
        "NoSuchBucket" | NO_OBJECT => 404,
        "AccessDenied" | "InvalidAccessKeyId" | "RequestTimeTooSkewed" | "SignatureDoesNotMatch" => 403,
        "SlowDown" => 503,
        "InternalError" => 500,
        "NotImplemented" => 501,
        _ => return None,
    })
}

/// The settings of a client that a message about its requests needs.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) has_region: bool,
    /// The machine has a region, and has not told it yet.
    pub(crate) asks_machine: bool,
    /// The URL of the bucket, if the error [needs it](needs_endpoint).
    pub(crate) endpoint: Option<String>,
    /// The client signs its requests with sessions of a directory bucket.
    pub(crate) by_session: bool,
    /// The credentials are loaded anew for the next request, because they were refused.
    pub(crate) is_loaded_anew: bool,
}

/// Returns `true` if the session that signed the request may be the reason of the refusal.
pub(crate) fn doubts_session<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    told(error).is_some_and(|(status, code)| answered_to_session(status, code).is_some())
}

/// The reason for which no session was opened. The request that needed the session was not sent.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct NoSession {
    pub(crate) kind: StoreErrorKind,
    pub(crate) text: String,
}

impl NoSession {
    pub(crate) fn of(error: StoreError) -> Self {
        let kind = match error.kind() {
            // The opening may have had an effect, and the request had none.
            StoreErrorKind::Ambiguous => StoreErrorKind::Rejected,
            kind => kind,
        };
        Self { kind, text: with_causes(&error) }
    }
}

/// Returns the known effect of a request without an answer: a request that was never sent has none.
fn unanswered(failure: &DispatchFailure, sender: &Sender) -> (StoreErrorKind, Cow<'static, str>) {
    let cause = cause(failure);
    if let Some(NoSession { kind, text }) = find(cause) {
        return (*kind, text.clone().into());
    }
    let asks_machine = cause.into_iter().flat_map(causes).any(|error| error.to_string().contains("IMDS"));
    if let Some(error) = find::<CredentialsError>(cause) {
        return match error {
            CredentialsError::CredentialsNotLoaded(_) => (StoreErrorKind::Fatal, environment::no_credentials().into()),
            CredentialsError::InvalidConfiguration(_) => (StoreErrorKind::Fatal, environment::wrong_settings().into()),
            // The source may be there in a moment, as a store may be.
            _ => (StoreErrorKind::Rejected, environment::credentials_failed(asks_machine).into()),
        };
    }
    if find::<Unloaded>(cause).is_some() {
        return (StoreErrorKind::Rejected, environment::credentials_failed(asks_machine).into());
    }
    if is_unknown_host(cause) {
        return (StoreErrorKind::Rejected, environment::unknown_host(sender.endpoint.as_deref()).into());
    }
    if is_connect(cause) {
        return (StoreErrorKind::Rejected, environment::unreachable(sender.endpoint.as_deref()).into());
    }
    let (kind, advice) = if is_unresolved(cause) {
        return unresolved(sender);
    } else if failure.is_user() {
        (
            StoreErrorKind::Fatal,
            "the request cannot be sent; check the endpoint (AWS_ENDPOINT_URL, or endpoint= in the URL)",
        )
    } else {
        BROKEN_CONNECTION
    };
    (kind, advice.into())
}

/// Returns the meaning of a client that does not know where to send a request.
fn unresolved(sender: &Sender) -> (StoreErrorKind, Cow<'static, str>) {
    if sender.asks_machine {
        return (StoreErrorKind::Rejected, environment::no_region_yet().into());
    }
    let advice = match sender.has_region {
        true => {
            "the request cannot be built; check the region (AWS_REGION, or region= in the URL) and the endpoint (AWS_ENDPOINT_URL, or \
             endpoint=)"
                .into()
        }
        false => environment::no_region().into(),
    };
    (StoreErrorKind::Fatal, advice)
}

/// Returns `true` if the name of the host has no address. The error of the client has no type of its own.
fn is_unknown_host(cause: Option<&(dyn StdError + 'static)>) -> bool {
    cause.into_iter().flat_map(causes).any(|error| error.to_string() == "dns error")
}

/// Returns `true` if the client does not know where to send a request. The type of this error is in a crate that each minor version
/// of the SDK has in another one.
fn is_unresolved(cause: Option<&(dyn StdError + 'static)>) -> bool {
    cause.into_iter().flat_map(causes).any(|error| format!("{error:?}").starts_with("ResolveEndpointError"))
}

/// Returns `true` if no source of the SDK's default chain has credentials. The type of this error is private.
fn is_empty_chain(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(|error| error.to_string().starts_with("no credentials found in chain"))
}

/// Returns `true` if the error is easier to understand with the name of the host.
pub(crate) fn needs_endpoint<E>(error: &SdkError<E, HttpResponse>) -> bool {
    let SdkError::DispatchFailure(failure) = error else { return false };
    is_unknown_host(cause(failure)) || is_connect(cause(failure))
}

/// Returns `true` if there was no connection, so that nothing was sent.
fn is_connect(cause: Option<&(dyn StdError + 'static)>) -> bool {
    find(cause).is_some_and(legacy::Error::is_connect)
}

fn cause(failure: &DispatchFailure) -> Option<&(dyn StdError + 'static)> {
    failure.as_connector_error().map(|error| error as &(dyn StdError + 'static))
}

/// Returns `true` if a request found no object. A missing bucket is an error, and so is a 404 that is not S3's.
pub(crate) fn is_absent<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    told(error) == Some((404, NO_OBJECT))
}

/// Returns the status of an answer and the store's own code.
fn told<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> Option<(u16, &str)> {
    let SdkError::ServiceError(answer) = error else { return None };
    Some((answer.raw().status().as_u16(), answer.err().code().unwrap_or_default()))
}

/// Converts the SDK's error about `object` into a [`StoreError`].
///
/// Only the text of the SDK's error is kept, or of the server's message. The whole error contains the raw response, and
/// when S3 refuses a signature, that response repeats signed headers, including a session token.
pub(crate) fn explain<E>(
    operation: Operation,
    object: &str,
    error: SdkError<E, HttpResponse>,
    sender: &Sender,
) -> StoreError
where
    E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
{
    match error {
        SdkError::ServiceError(answer) => {
            let status = answer.raw().status().as_u16();
            let metadata = answer.err().meta().clone();
            let code = metadata.code().unwrap_or_default();
            let meaning = if (200..300).contains(&status) { documented_status(code).unwrap_or(status) } else { status };
            let retry_after = answer.raw().headers().get("retry-after").and_then(answer::retry_after);
            let by_session = sender.by_session.then(|| answered_to_session(meaning, code)).flatten();
            let verdict = by_session.or(sender.is_loaded_anew.then_some(answer::LOADED_ANEW));
            let verdict = verdict.unwrap_or_else(|| answered(operation, meaning, code));
            let (kind, mut text) = answer::with_code(verdict, status, code);
            if let Some(region) = bucket_region(answer.raw()).filter(|_| verdict == ELSEWHERE) {
                text.push_str("; the bucket's region is ");
                text.push_str(region);
            }
            let words = metadata.message().and_then(Words::of);
            failed(object, (kind, text), words).with_retry_after(retry_after)
        }
        other => {
            let verdict = match &other {
                SdkError::ConstructionFailure(_) => unresolved(sender),
                SdkError::DispatchFailure(failure) => unanswered(failure, sender),
                SdkError::TimeoutError(_) => (
                    StoreErrorKind::Ambiguous,
                    "no answer within the client's timeout; check the network and the endpoint".into(),
                ),
                _ => (UNREADABLE_ANSWER.0, UNREADABLE_ANSWER.1.into()),
            };
            let source = other.into_source().ok().filter(|source| find::<NoSession>(Some(&**source)).is_none());
            // The SDK's words about a missing region, or about a chain without credentials, say nothing more.
            let source = source.filter(|source| sender.has_region || !is_unresolved(Some(&**source)));
            let source = source.filter(|source| !is_empty_chain(&**source));
            let words = source.and_then(|source| match find::<Unloaded>(Some(&*source)) {
                // The words around it say the same with less.
                Some(unloaded) => Words::of(&unloaded.to_string()),
                None => Words::of_error(&*source),
            });
            failed(object, verdict, words)
        }
    }
}

fn find<'a, E: StdError + 'static>(error: Option<&'a (dyn StdError + 'static)>) -> Option<&'a E> {
    error.into_iter().flat_map(causes).find_map(|cause| cause.downcast_ref())
}

#[cfg(test)]
mod tests {
    use aws_sdk_s3::Client;
    use aws_sdk_s3::config::{BehaviorVersion, Config, Credentials, Region};
    use leaderelection::implement::ConditionalStore as _;

    use super::*;
    use crate::S3Store;

    #[tokio::test]
    async fn a_region_without_hosts_is_a_wrong_setting_and_no_broken_connection() {
        let config = Config::builder().behavior_version(BehaviorVersion::latest()).region(Region::new("a b"));
        let config = config.credentials_provider(Credentials::new("key", "secret", None, None, "test"));
        let error = S3Store::new(Client::from_conf(config.build()), "bucket").get("key").await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Fatal);
        assert!(error.to_string().contains("the request cannot be built; check the region"), "{error}");
    }
}
