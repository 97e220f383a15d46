//! The answer of a server whose status, headers and code the store sees itself.

use std::time::Duration;
#[cfg(feature = "http")]
use std::time::SystemTime;

use leaderelection::StoreErrorKind;
use leaderelection::causes::one_line;

use super::{MOST_OF_A_TEXT, Verdict};

/// The meaning of a connection that fails before an answer.
pub const BROKEN_CONNECTION: Verdict = (
    StoreErrorKind::Ambiguous,
    "the connection failed before an answer came; check the network, and the proxies on the way",
);
/// The meaning of an answer that is none of the store's.
pub const UNREADABLE_ANSWER: Verdict =
    (StoreErrorKind::Ambiguous, "the answer cannot be read; check the endpoint, and the proxies on the way");

/// The meaning of a refusal of credentials that have served, and are loaded anew.
pub const LOADED_ANEW: Verdict =
    (StoreErrorKind::Rejected, "access denied; the credentials are loaded anew for the next request");

/// Adds the status of an answer to its meaning and, if there is one, the store's own code.
pub fn with_code((kind, advice): Verdict, status: u16, code: &str) -> (StoreErrorKind, String) {
    let code = one_line(code, MOST_OF_A_TEXT);
    let separator = if code.is_empty() { "" } else { " " };
    (kind, format!("{advice} ({status}{separator}{code})"))
}

/// Returns the time that a `Retry-After` header asks for.
///
/// The header may also contain a date, which would need a clock that agrees with the server's clock. None of
/// the stores sends a date.
pub fn retry_after(header: &str) -> Option<Duration> {
    header.trim().parse().ok().map(Duration::from_secs)
}

/// Returns the age of an object at the moment of the answer, by the server's clock: `Date` less `Last-Modified`.
///
/// An object from the future has the age zero: the clock of its write was ahead.
#[cfg(feature = "http")]
pub fn age(date: Option<&str>, modified: Option<SystemTime>) -> Option<Duration> {
    let date = httpdate::parse_http_date(date?).ok()?;
    Some(date.duration_since(modified?).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_named_by_its_status_and_the_code_that_came_with_it() {
        let verdict = (StoreErrorKind::Fatal, "access denied");
        assert_eq!(with_code(verdict, 403, "AccessDenied"), (verdict.0, "access denied (403 AccessDenied)".to_owned()));
        assert_eq!(with_code(verdict, 403, ""), (verdict.0, "access denied (403)".to_owned()));
        let page = "Oh no\n".repeat(70_000);
        let (_, error) = with_code((StoreErrorKind::Fatal, "no"), 400, &page);
        assert!(error.len() < 2 * MOST_OF_A_TEXT && !error.contains('\n'), "{error}");
    }

    #[cfg(feature = "http")]
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
