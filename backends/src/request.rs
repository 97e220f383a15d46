//! The treatment of a request by every store that speaks HTTP: a deadline, a limit on the answer's size, and a
//! verdict on the answer.

use std::error::Error as StdError;
use std::time::Duration;
#[cfg(any(feature = "azure", feature = "s3"))]
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use leaderelection::{MAX_BODY_BYTES, StoreError, StoreErrorKind, TimeLimit, one_line};

/// The operation of a request, as far as the meaning of an answer depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Get,
    Create,
    Update,
    Delete,
    List,
}

impl Operation {
    /// Returns `true` for operations that write; a read is never in conflict.
    pub(crate) fn is_write(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Delete)
    }
}

/// An error kind, and a sentence for people with the problem and the next step.
pub(crate) type Verdict = (StoreErrorKind, &'static str);

// These problems arise between client and server.
pub(crate) const BROKEN_CONNECTION: Verdict = (
    StoreErrorKind::Ambiguous,
    "the connection failed before an answer came; check the network, and the proxies on the way",
);
pub(crate) const UNREADABLE_ANSWER: Verdict =
    (StoreErrorKind::Ambiguous, "the answer cannot be read; check the endpoint, and the proxies on the way");

/// A gateway's own 404 says nothing about the object behind it.
pub(crate) const NOT_FOUND_BY_ANOTHER: Verdict = (
    StoreErrorKind::Ambiguous,
    "not found, but not in the words of the store; check the endpoint, and the proxies on the way",
);
pub(crate) const DAMAGED: Verdict = (
    StoreErrorKind::Ambiguous,
    "the content does not have the checksum that the store announced; check the endpoint, and the proxies on the way",
);

/// The longest time that a request may take unless the store is configured otherwise.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Limits `call`, including everything that it reads, to `timeout`.
pub(crate) async fn bounded<T>(
    timeout: Duration,
    object: &str,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let limit = TimeLimit::new(timeout).of_setting("request_timeout of the store");
    limit.answer(call).await.unwrap_or_else(|silence| Err(silence.of(object)))
}

/// Creates the error for an answer with this status and, if there is one, the store's own code.
pub(crate) fn answered(object: &str, (kind, advice): Verdict, status: u16, code: &str) -> StoreError {
    let code = one_line(code, MOST_OF_A_TEXT);
    let separator = if code.is_empty() { "" } else { " " };
    StoreError::new(kind, format!("{object}: {advice} ({status}{separator}{code})"))
}

/// Creates the error for a successful answer that has no version, such as an ETag. A page that asks for a log-in is
/// such an answer.
pub(crate) fn without_version(kind: StoreErrorKind, object: &str, version: &str) -> StoreError {
    let advice = "check the endpoint, and the proxies on the way";
    StoreError::new(kind, format!("{object}: the answer has no {version}, so it is not the store's; {advice}"))
}

/// The longest text of a server or a client that is kept, in characters.
const MOST_OF_A_TEXT: usize = 200;

/// The words of a server or a client about a failure: on one line, and short enough for a log. What a server says may
/// be a page of any size, with any characters.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Words(String);

impl Words {
    /// Returns the words of `text`; `None` if it has none.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let words = one_line(text, MOST_OF_A_TEXT);
        (!words.is_empty()).then_some(Self(words))
    }

    /// Returns the words of an error and its causes. A cause that repeats what was said already is left out.
    pub(crate) fn of_error(error: &(dyn StdError + 'static)) -> Option<Self> {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let words = cause.to_string();
            if !text.contains(&words) {
                text = format!("{text}: {words}");
            }
            source = cause.source();
        }
        Self::of(&text)
    }

    /// Adds the words to an error, if there are any.
    pub(crate) fn add_to(words: Option<Self>, error: StoreError) -> StoreError {
        match words {
            Some(words) => error.with_source(words),
            None => error,
        }
    }
}

/// Returns the time that a `Retry-After` header asks for.
///
/// The header may also contain a date, which would need a clock that agrees with the server's clock. None of
/// the stores sends a date.
pub(crate) fn retry_after(header: &str) -> Option<Duration> {
    header.trim().parse().ok().map(Duration::from_secs)
}

/// Returns the age of an object at the moment of the answer, by the server's clock: `Date` less `Last-Modified`.
///
/// An object from the future has the age zero: the clock of its write was ahead.
#[cfg(any(feature = "azure", feature = "s3"))]
pub(crate) fn age(date: Option<&str>, modified: Option<SystemTime>) -> Option<Duration> {
    let date = httpdate::parse_http_date(date?).ok()?;
    Some(date.duration_since(modified?).unwrap_or_default())
}

/// A body that is being received, never larger than [`MAX_BODY_BYTES`].
#[derive(Debug)]
pub(crate) struct Body<'a> {
    object: &'a str,
    received: BytesMut,
}

impl<'a> Body<'a> {
    /// Starts a body with an announced length of `length` bytes.
    pub(crate) fn new(object: &'a str, length: Option<u64>) -> Result<Self, StoreError> {
        let length = usize::try_from(length.unwrap_or(0)).unwrap_or(usize::MAX);
        if length > MAX_BODY_BYTES {
            return Err(too_large(object));
        }
        Ok(Self { object, received: BytesMut::with_capacity(length) })
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) -> Result<(), StoreError> {
        if self.received.len() + chunk.len() > MAX_BODY_BYTES {
            return Err(too_large(self.object));
        }
        self.received.extend_from_slice(chunk);
        Ok(())
    }

    pub(crate) fn finish(self) -> Bytes {
        self.received.freeze()
    }
}

/// The error of a body that cannot be received to its end.
pub(crate) fn broke_off(object: &str, words: Option<Words>) -> StoreError {
    let message = format!("{object}: its content cannot be read to the end; check the network");
    Words::add_to(words, StoreError::new(StoreErrorKind::Ambiguous, message))
}

fn too_large(object: &str) -> StoreError {
    let message = format!(
        "{object}: larger than {MAX_BODY_BYTES} bytes, so it is not ours; choose another key, nothing was overwritten"
    );
    StoreError::new(StoreErrorKind::Unreadable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn silence_is_told_with_what_to_check() {
        let limit = Duration::from_millis(2);
        let error = bounded::<()>(limit, "s3://bucket/key", std::future::pending()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Ambiguous);
        let expected = "s3://bucket/key: no answer within 2ms (request_timeout of the store); check the network and the \
                        endpoint, or allow more time";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn an_answer_is_named_by_its_status_and_the_code_that_came_with_it() {
        let verdict = (StoreErrorKind::Fatal, "access denied");
        assert_eq!(answered("key", verdict, 403, "AccessDenied").to_string(), "key: access denied (403 AccessDenied)");
        assert_eq!(answered("key", verdict, 403, "").to_string(), "key: access denied (403)");
    }

    #[test]
    fn the_words_of_others_are_few_and_on_one_line() {
        let page = format!("<html>\r\n\u{1b}[2J{}", "Oh no ".repeat(70_000));
        let words = Words::of(&page).unwrap().to_string();
        assert!(words.starts_with("<html> [2JOh no Oh no") && words.ends_with('…'), "{words}");
        assert_eq!(words.chars().count(), MOST_OF_A_TEXT + 1);
        assert!(Words::of(" \n").is_none());
        let error = answered("key", (StoreErrorKind::Fatal, "no"), 400, &page).to_string();
        assert!(error.len() < 2 * MOST_OF_A_TEXT && !error.contains('\n'), "{error}");
    }

    #[test]
    fn a_cause_that_says_the_same_again_is_left_out() {
        let inner = broke_off("key", Words::of("reset by peer"));
        let outer = StoreError::new(StoreErrorKind::Ambiguous, format!("oh no: {inner}")).with_source(inner);
        assert_eq!(
            Words::of_error(&outer).unwrap().to_string(),
            "oh no: key: its content cannot be read to the end; check the network: reset by peer"
        );
    }

    #[cfg(any(feature = "azure", feature = "s3"))]
    #[test]
    fn an_age_is_the_difference_of_two_times_of_the_server() {
        let modified = httpdate::parse_http_date("Fri, 20 Nov 2026 13:00:00 GMT").unwrap();
        let age_at = |date| age(date, Some(modified));
        assert_eq!(age_at(Some("Fri, 20 Nov 2026 13:01:07 GMT")), Some(Duration::from_secs(67)));
        assert_eq!(age_at(Some("Fri, 20 Nov 2026 12:59:58 GMT")), Some(Duration::ZERO), "written by a clock ahead");
        assert_eq!(age_at(Some("yesterday")), None);
        assert_eq!(age_at(None), None);
        assert_eq!(age(Some("Fri, 20 Nov 2026 13:01:07 GMT"), None), None);
    }

    #[test]
    fn a_date_does_not_make_us_wait() {
        assert_eq!(retry_after(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Fri, 20 Nov 2026 13:00:00 GMT"), None);
    }
}
