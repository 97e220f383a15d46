//! Durations as people write them.

use std::time::Duration;

use humantime::DurationError as Cause;

/// The error of a text that is not a duration.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(transparent)]
pub struct DurationError(#[from] Cause);

/// Reads a duration such as `15s`, `1m30s`, `1h 30min` or `1.5s`: one number with a unit, or several that are added up.
///
/// Every duration in a record, in settings and in arguments is read here. No text makes this function panic, because
/// everyone who can write a lock chooses the text.
///
/// ```
/// use std::time::Duration;
/// use leaderelection::timings::parse_duration;
///
/// assert_eq!(parse_duration("1m30s"), Ok(Duration::from_secs(90)));
/// assert!(parse_duration("15").is_err());
/// ```
///
/// # Errors
///
/// If the text is not a duration, or if the duration is longer than a [`Duration`] can be.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let mut total = Duration::ZERO;
    let mut read = 0;
    while read < text.len() || read == 0 {
        let part = first_part(&text[read..]);
        if read > 0 && part == "0" {
            // `0` needs no unit if it is the whole text, but it does at the end of a sum.
            return Err(Cause::UnknownUnit { start: text.len(), end: text.len(), unit: String::new(), value: 0 }.into());
        }
        #[allow(clippy::disallowed_methods, reason = "it panics on sums that overflow, and one part is no sum")]
        let duration = humantime::parse_duration(part).map_err(|cause| shifted(cause, read))?;
        total = total.checked_add(duration).ok_or(Cause::NumberOverflow)?;
        read += part.len();
    }
    Ok(total)
}

/// The first number of a text with its unit: all before the first digit that follows a letter.
fn first_part(text: &str) -> &str {
    let unit = text.find(char::is_alphabetic).unwrap_or(text.len());
    let next = text[unit..].find(|c: char| c.is_ascii_digit()).unwrap_or(text.len() - unit);
    &text[..unit + next]
}

/// The error of a part of a text that begins after `read` bytes, with its position in the whole text.
fn shifted(cause: Cause, read: usize) -> Cause {
    match cause {
        Cause::InvalidCharacter(at) => Cause::InvalidCharacter(at + read),
        Cause::NumberExpected(at) => Cause::NumberExpected(at + read),
        Cause::UnknownUnit { start, end, unit, value } => {
            Cause::UnknownUnit { start: start + read, end: end + read, unit, value }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_beyond_the_longest_duration_are_refused() {
        for (text, whole) in [
            ("18446744073709551615s999ms", Some(Duration::new(u64::MAX, 999_000_000))),
            ("18446744073709551615s1000ms", None),
            ("18446744073709551615s 999ms 1ms", None),
            ("18446744073709551616s", None),
            ("0", Some(Duration::ZERO)),
            ("0ns0", None),
        ] {
            assert_eq!(parse_duration(text).ok(), whole, "{text}");
        }
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "these sums are small")]
    fn mistakes_have_their_place_in_the_whole_text() {
        for text in ["1s2!", "1s 2m;", "1s 2m ;", "1s2m 3lightyears", "1s.5s", "1s 2", "1h1m-1s"] {
            let whole = DurationError::from(humantime::parse_duration(text).unwrap_err());
            assert_eq!(parse_duration(text), Err(whole), "{text}");
        }
    }
}
