//! The treatment of a request by every store that is reached over a network: a deadline, a limit on the answer's size,
//! and a verdict on the answer.

use std::any::Any;
use std::error::Error as StdError;
use std::ffi::OsString;
use std::fmt::Display;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use leaderelection::causes::one_line;
use leaderelection::lock::TimeLimit;
use leaderelection::{StoreError, StoreErrorKind};

pub mod answer;
pub mod beginning;
pub mod fresh;
pub mod kept;

/// The operation of a request, as far as the meaning of an answer depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A read.
    Get,
    /// A write of an object that must not exist.
    Create,
    /// A write instead of one version.
    Update,
    /// A deletion.
    Delete,
    /// A page of a listing.
    List,
    /// The opening of a session, of which a request about an object is a part.
    Session,
}

impl Operation {
    /// Returns `true` for operations that write; a read is never in conflict.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Delete)
    }
}

/// An error kind, and a sentence for people with the problem and the next step.
pub type Verdict = (StoreErrorKind, &'static str);

/// A gateway's own 404 says nothing about the object behind it.
pub const NOT_FOUND_BY_ANOTHER: Verdict = (
    StoreErrorKind::Ambiguous,
    "not found, but the answer is not the store's; check the endpoint, and the proxies on the way",
);
/// The name of this library in the `User-Agent` of requests.
pub const USER_AGENT: &str = concat!("leaderelection/", env!("CARGO_PKG_VERSION"));
/// The longest time that a request may take unless the store is configured otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Limits `call`, including everything that it reads, to `timeout`. A panic of a client fails this one request.
///
/// An elector has a shorter limit of its own. This one is for those who ask a store without a lock, such as a fence or a server of
/// Leases.
pub async fn bounded<T>(
    timeout: Duration,
    object: &str,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let limit = TimeLimit::new(timeout).of_setting("request_timeout of the store");
    match limit.answer(AssertUnwindSafe(call).catch_unwind()).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(panic)) => Err(panicked(object, &*panic)),
        Err(silence) => Err(silence.of(object)),
    }
}

/// Creates the error of a request whose client has panicked. Clients look names up on threads of the runtime, which panics
/// if it has none and the system gives none.
fn panicked(object: &str, panic: &(dyn Any + Send)) -> StoreError {
    let words = panic.downcast_ref::<&str>().copied();
    let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).and_then(Words::of);
    let advice =
        "its client panicked; if it got no thread, raise the limit of processes (pids.max, TasksMax=, ulimit -u)";
    failed(object, (StoreErrorKind::Ambiguous, advice), words)
}

/// Creates the error about `object` with this meaning, and with the words of a server or a client if there are any.
pub fn failed(object: &str, (kind, advice): (StoreErrorKind, impl Display), words: Option<Words>) -> StoreError {
    let advice = match words.as_ref().and_then(|words| words.about_a_certificate) {
        Some(advice) => advice.to_owned(),
        None => with_proxy(advice.to_string(), std::env::var_os),
    };
    let error = StoreError::new(kind, format!("{object}: {advice}"));
    match words {
        Some(words) => error.with_source(words),
        None => error,
    }
}

/// The variables that name a proxy, which is asked instead of a store.
const PROXIES: [&str; 6] = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// Adds, to the advice about a server that cannot be reached, the proxy that may be the one.
fn with_proxy(advice: String, variable: impl Fn(&'static str) -> Option<OsString>) -> String {
    let is_set = |name: &&'static str| variable(name).is_some_and(|value| !value.is_empty());
    match PROXIES.into_iter().find(is_set).filter(|_| UNREACHABLE.iter().any(|words| advice.starts_with(words))) {
        Some(name) => format!("{advice}; also check the proxy that {name} names, and NO_PROXY"),
        None => advice,
    }
}

/// The beginnings of the advice about a server that cannot be reached.
const UNREACHABLE: [&str; 2] = ["cannot connect", "cannot find the host"];

/// Creates the error for a successful answer that has no version, such as an ETag. A page that asks for a log-in is
/// such an answer.
pub fn without_version(kind: StoreErrorKind, object: &str, version: &str) -> StoreError {
    let advice = "check the endpoint, and the proxies on the way";
    failed(object, (kind, format_args!("the answer has no {version}, so it is not the store's; {advice}")), None)
}

/// The longest text of a server or a client that is kept, in characters.
const MOST_OF_A_TEXT: usize = 200;

/// The words of a TLS client that refuses a certificate, and of one whose own is refused.
const REFUSALS: [&str; 2] = ["invalid peer certificate", "received fatal alert"];

/// The message of a server or a client about a failure: on one line, and short enough for a log. What a server says may
/// be a page of any size, with any characters.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Words {
    text: String,
    /// The advice about the server's certificate, if it is refused. The reason may stand behind the part that is kept.
    about_a_certificate: Option<&'static str>,
    /// One side has refused the certificate of the other.
    is_about_certificates: bool,
}

impl Words {
    /// Returns the message in `text`; `None` if it is empty.
    pub fn of(text: &str) -> Option<Self> {
        let words = one_line(text, MOST_OF_A_TEXT);
        let is_about_certificates = REFUSALS.iter().any(|refusal| text.contains(refusal));
        let about_a_certificate = about_a_certificate(text);
        (!words.is_empty()).then_some(Self { text: words, about_a_certificate, is_about_certificates })
    }

    /// Returns the message of an error and its causes, without causes that repeat the text before them.
    pub fn of_error(error: &(dyn StdError + 'static)) -> Option<Self> {
        let mut text = error.to_string();
        for words in causes(error).map(ToString::to_string) {
            if !text.contains(&words) {
                text = format!("{text}: {words}");
            }
        }
        Self::of(&text)
    }
}

/// Returns `true` if this is what a TLS client says about a refused certificate.
pub fn is_refusal(cause: &str) -> bool {
    REFUSALS.iter().any(|refusal| cause.starts_with(refusal))
}

/// Returns `true` if client and server have found no certificate of each other that they trust.
pub fn is_about_certificates(error: &StoreError) -> bool {
    let words = error.source().and_then(|words| words.downcast_ref::<Words>());
    words.is_some_and(|words| words.is_about_certificates)
}

/// Returns what to do about a server whose certificate is refused, if a client says so.
fn about_a_certificate(text: &str) -> Option<&'static str> {
    let (_, reason) = text.split_once(REFUSALS[0])?;
    // Another key of an authority with a known name makes a bad signature.
    Some(match ["UnknownIssuer", "CaUsedAsEndEntity", "BadSignature"].iter().any(|unknown| reason.contains(unknown)) {
        true => {
            "the server's certificate was issued by an authority that this machine does not know; name a file with the authority's \
             certificate by ?ca= in the URL, for Google in SSL_CERT_FILE, for Kubernetes in the kubeconfig"
        }
        false => {
            "the server's certificate is refused; check the endpoint's name, the dates of the certificate, and this machine's \
             clock"
        }
    })
}

/// Returns an error and its causes.
pub fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// A body that is being received, never larger than the caller allows.
#[derive(Debug)]
pub struct Body<'a> {
    object: &'a str,
    most: usize,
    received: BytesMut,
}

impl<'a> Body<'a> {
    /// Starts a body of at most `most` bytes, with an announced length of `length` bytes.
    pub fn new(object: &'a str, most: usize, length: Option<u64>) -> Result<Self, StoreError> {
        let length = usize::try_from(length.unwrap_or(0)).unwrap_or(usize::MAX);
        if length > most {
            return Err(too_large(object, most));
        }
        Ok(Self { object, most, received: BytesMut::with_capacity(length) })
    }

    /// Adds a part.
    ///
    /// # Errors
    ///
    /// If the body becomes too large.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), StoreError> {
        if self.received.len() + chunk.len() > self.most {
            return Err(too_large(self.object, self.most));
        }
        self.received.extend_from_slice(chunk);
        Ok(())
    }

    /// The whole body.
    #[must_use]
    pub fn finish(self) -> Bytes {
        self.received.freeze()
    }
}

/// The error of a body that cannot be received to its end.
pub fn broke_off(object: &str, words: Option<Words>) -> StoreError {
    failed(object, (StoreErrorKind::Ambiguous, "its content cannot be read to the end; check the network"), words)
}

fn too_large(object: &str, most: usize) -> StoreError {
    let advice =
        format_args!("larger than {most} bytes, so it is not ours; choose another key, nothing was overwritten");
    failed(object, (StoreErrorKind::Unreadable, advice), None)
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

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

    #[tokio::test]
    async fn a_panic_of_a_client_fails_one_request() {
        let error = bounded::<()>(DEFAULT_TIMEOUT, "s3://bucket/key", async { panic!("no thread") }).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Ambiguous);
        assert!(error.to_string().starts_with("s3://bucket/key: its client panicked; if it got no thread"), "{error}");
        assert_eq!(error.source().unwrap().to_string(), "no thread");
    }

    #[test]
    fn a_proxy_that_may_be_the_one_is_named() {
        let environment = |name: &'static str| (name == "HTTPS_PROXY").then(|| OsString::from("http://proxy:3128"));
        let told = |advice: &str| with_proxy(advice.to_owned(), environment);
        assert_eq!(
            told("cannot connect; check the network"),
            "cannot connect; check the network; also check the proxy that HTTPS_PROXY names, and NO_PROXY"
        );
        assert_eq!(told("throttled"), "throttled");
        let empty = |name: &'static str| (name == "HTTPS_PROXY").then(OsString::new);
        assert_eq!(with_proxy("cannot connect".to_owned(), empty), "cannot connect");
    }

    #[test]
    fn the_words_of_others_are_few_and_on_one_line() {
        let page = format!("<html>\r\n\u{1b}[2J{}", "Oh no ".repeat(70_000));
        let words = Words::of(&page).unwrap().to_string();
        assert!(words.starts_with("<html> [2JOh no Oh no") && words.ends_with('…'), "{words}");
        assert_eq!(words.chars().count(), MOST_OF_A_TEXT + 1);
        assert!(Words::of(" \n").is_none());
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
}
