//! Times and durations, for people and as JSON.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize as _;

/// The largest number of bytes of a URL in a sentence.
const LONGEST_URL: usize = 200;

/// Formats a duration for people: `1.8s`, `83s`, `12m 5s`, `3days 4h`.
pub(crate) fn short(duration: Duration) -> String {
    if duration < Duration::from_secs(60) {
        return format!("{:.1}s", duration.as_secs_f64());
    }
    let text = humantime::format_duration(Duration::from_secs(duration.as_secs())).to_string();
    text.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

/// Formats the time since `time`, as far as the clocks agree.
pub(crate) fn ago(time: DateTime<Utc>, now: DateTime<Utc>) -> String {
    match (now - time).to_std() {
        Ok(age) => format!("{} ago", short(age)),
        Err(_) => format!("{} ahead of our clock", short((time - now).to_std().unwrap_or_default())),
    }
}

/// Returns a URL as a word of a shell, or `URL` for several, and for one that is too long for a sentence.
pub(crate) fn shell_word(url: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:%+,@".contains(c);
    if url.is_empty() || url.len() > LONGEST_URL || url.contains(' ') {
        return "URL".to_owned();
    }
    if url.chars().all(is_plain) { url.to_owned() } else { format!("'{}'", url.replace('\'', r"'\''")) }
}

/// Formats a time in the form that all commands use.
pub(crate) fn time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

pub(crate) fn as_time<S: serde::Serializer>(value: &Option<DateTime<Utc>>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(time).serialize(serializer)
}

/// Serializes a duration, if there is one, as seconds with fractions.
pub(crate) fn as_seconds<S, D>(value: &D, serializer: S) -> Result<S::Ok, S::Error>
where
    S: serde::Serializer,
    D: Copy + Into<Option<Duration>>,
{
    let value: Option<Duration> = (*value).into();
    value.map(|duration| (duration.as_secs_f64() * 1e3).round() / 1e3).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        for (millis, text) in [(40, "0.0s"), (1_840, "1.8s"), (83_000, "1m 23s"), (273_845_000, "3days 4h")] {
            assert_eq!(short(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn a_url_in_a_command_is_one_word_of_a_shell() {
        assert_eq!(shell_word("file:///locks/a"), "file:///locks/a");
        assert_eq!(shell_word("s3://b/a?region=x&endpoint=y"), "'s3://b/a?region=x&endpoint=y'");
        assert_eq!(shell_word("s3://b/it's"), r"'s3://b/it'\''s'");
        assert_eq!(shell_word("s3://a/x + s3://b/x"), "URL");
        assert_eq!(shell_word(&format!("s3://b/{}", "x".repeat(200))), "URL");
    }

    #[test]
    fn a_clock_that_is_ahead_is_called_so() {
        let now = DateTime::UNIX_EPOCH + Duration::from_secs(100);
        assert_eq!(ago(DateTime::UNIX_EPOCH, now), "1m 40s ago");
        assert_eq!(ago(now + Duration::from_secs(2), now), "2.0s ahead of our clock");
    }
}
