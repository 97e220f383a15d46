//! The effect of a call, as far as the errors of `object_store` tell it.

use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_store_support::request::{NOT_FOUND_BY_ANOTHER, Operation, Verdict, Words, failed};
use object_store::Error;

const NO_BUCKET: Verdict =
    (StoreErrorKind::Fatal, "there is no such bucket or container; create it, or correct its name, region or endpoint");

/// Returns `true` if a read found no object. A missing bucket or container is an error.
pub(crate) fn is_absent(error: &Error) -> bool {
    matches!(error, Error::NotFound { .. }) && !names_no_bucket(error)
}

/// A bucket or container is distinguished from an object by the code in the body of the answer, which is in the text.
fn names_no_bucket(error: &Error) -> bool {
    let text = error.to_string();
    ["<Code>NoSuchBucket</Code>", "<Code>ContainerNotFound</Code>"].iter().any(|code| text.contains(code))
}

fn verdict(operation: Operation, error: &Error) -> Verdict {
    use StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected};

    match error {
        // The kind of this error depends on the request.
        _ if names_no_bucket(error) => NO_BUCKET,
        Error::NotFound { .. } if operation == Operation::Update => (Conflict, "it was deleted meanwhile"),
        Error::NotFound { .. } => NOT_FOUND_BY_ANOTHER,
        // A 409 has the first name, whatever the write was. S3 answers 409 to an update that met another writer.
        Error::AlreadyExists { .. } | Error::Precondition { .. } if operation.is_write() => {
            (Conflict, "it was changed or created meanwhile, or this write was repeated by the store's client")
        }
        Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotModified { .. } => {
            (Rejected, "another request got in between")
        }
        Error::NotImplemented { .. } | Error::NotSupported { .. } => (
            Fatal,
            "the store cannot write on a condition; use one that can, such as S3, Azure or Google Cloud Storage, and for \
             a local directory FileStore of leaderelection-backends or a file:/// URL",
        ),
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            (Fatal, "access denied; check the credentials, and their permissions to read, write and list")
        }
        Error::InvalidPath { .. } => {
            (Fatal, "object_store cannot spell the key of an object in this folder; choose a folder of its own")
        }
        Error::UnknownConfigurationKey { .. } => (Fatal, "the store's configuration is wrong"),
        // `Generic` may be a connection that was refused, or a failure after the effect: its status is private.
        _ => (Ambiguous, "the request failed, and its effect is unknown; check the store and the network"),
    }
}

/// Converts an error about `object` into a [`StoreError`].
pub(crate) fn explain(operation: Operation, object: &str, error: Error) -> StoreError {
    failed(object, verdict(operation, &error), words(&error))
}

/// Returns the text of the error about an answer, without the request that it repeats. Of the answer itself, only the
/// code and the message are kept: when S3 refuses a signature, its answer repeats signed headers, including a session
/// token.
pub(crate) fn words(error: &Error) -> Option<Words> {
    let text = error.to_string();
    let Some((_, answered)) = text.split_once(" - ") else { return Words::of_error(error) };
    let Some((status, body)) = answered.split_once('<') else { return Words::of(answered) };
    let parts = ["Code", "Message"].map(|name| element(body, name));
    let said: Vec<_> = std::iter::once(status.trim_end()).chain(parts.into_iter().flatten()).collect();
    Words::of(&said.join(" "))
}

/// Returns the text of the first element with this name.
fn element<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = answer.split_once(&format!("<{name}>"))?;
    Some(rest.split_once('<')?.0.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_in_an_answer_is_not_repeated() {
        let answer = "Error performing PUT http://127.0.0.1/bucket/key in 2ms - Server returned non-2xx status code: 403 Forbidden: <?xml version=\"1.0\"?><Error>\
                      <Code>SignatureDoesNotMatch</Code><Message>Check your key.</Message><CanonicalRequest>PUT\n\
                      x-amz-security-token:SECRET</CanonicalRequest></Error>";
        let error = Error::PermissionDenied { path: "key".to_owned(), source: answer.into() };
        let explained = explain(Operation::Create, "store: key", error);
        assert_eq!(explained.kind(), StoreErrorKind::Fatal);
        let shown = format!("{explained:?}");
        assert!(
            shown.contains(
                ": Server returned non-2xx status code: 403 Forbidden: SignatureDoesNotMatch Check your key."
            ),
            "{shown}"
        );
        assert!(!shown.contains("SECRET"), "{shown}");
    }

    #[test]
    fn a_missing_bucket_is_no_missing_object() {
        let found = |body: &str| Error::NotFound { path: "key".to_owned(), source: body.into() };
        assert!(is_absent(&found("<Error><Code>NoSuchKey</Code></Error>")));
        for code in ["NoSuchBucket", "ContainerNotFound"] {
            let error = found(&format!("<Error><Code>{code}</Code></Error>"));
            assert!(!is_absent(&error));
            for operation in [Operation::Get, Operation::Create, Operation::Update, Operation::List] {
                assert_eq!(verdict(operation, &error), NO_BUCKET);
            }
        }
    }
}
