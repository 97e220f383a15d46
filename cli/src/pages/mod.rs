//! The common parts of the pages for people: times, spans, names and timelines.

pub(crate) mod http;
mod timeline;

use std::fmt::Display;
use std::time::Duration;

use askama::filters::{Html, escape};
use chrono::{DateTime, TimeDelta, Utc};

pub(crate) use self::timeline::{Bar, Timeline, lasted};
use crate::lock::view::{self, View};
use crate::output::escape::cut;
// It escapes what HTML does not. A title has no element that keeps control characters from reordering it, and `<bdi>` does
// not help against a text that opens an isolate of its own: the end of the element would close only that one.
pub(crate) use crate::output::escape::escape as line;

/// The longest name of a leader that is shown whole.
pub(crate) const NAME: usize = 48;

/// The status of a lock in a sentence, as HTML, and for how long it has lasted. Names have at most that many characters.
pub(crate) fn sentence(view: &View, most: usize, lasted: Option<Duration>) -> String {
    capital(&view.sentence(|name| emphasized(name, most), lasted.as_ref().map(words).as_deref()))
}

/// The last leader of a lock in a sentence, as HTML.
pub(crate) fn last_leader(view: &View, most: usize) -> String {
    view.last_leader(|name| emphasized(name, most))
}

fn emphasized(name: &str, most: usize) -> String {
    let Ok(name) = escape(cut(name, most), Html);
    format!("<strong><bdi>{name}</bdi></strong>")
}

/// A text as a sentence begins.
pub(crate) fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// The next step as HTML, as a sentence begins. The end of a line does not divide an option.
pub(crate) fn advice(step: &str) -> String {
    let word = |word: &str| {
        let Ok(text) = escape(word, Html);
        if word.contains("--") { format!("<span class=\"option\">{text}</span>") } else { text.to_string() }
    };
    capital(&line(step)).split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Formats a time for programs.
pub(crate) fn stamp(at: &DateTime<Utc>) -> String {
    view::time(*at)
}

/// Formats a time for people.
pub(crate) fn time(at: &DateTime<Utc>) -> impl Display {
    at.format("%Y-%m-%d %H:%M:%S UTC")
}

/// Formats a configured duration.
pub(crate) fn whole(duration: &Duration) -> impl Display {
    humantime::format_duration(*duration)
}

/// Formats a span for people, in its one or two largest units: `4 min`, `3 h 20 min`.
pub(crate) fn words(span: &Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let seconds = span.as_secs();
    let two = |large: u64, name: &str, rest: u64, next: &str| match rest {
        0 => format!("{large} {name}"),
        rest => format!("{large} {name} {rest} {next}"),
    };
    match seconds {
        0..MINUTE => format!("{seconds} s"),
        MINUTE..HOUR => format!("{} min", seconds / MINUTE),
        HOUR..DAY => two(seconds / HOUR, "h", seconds % HOUR / MINUTE, "min"),
        DAY.. => {
            let days = seconds / DAY;
            two(days, if days == 1 { "day" } else { "days" }, seconds % DAY / HOUR, "h")
        }
    }
}

/// The time from `from` to `to`; zero if the clocks say that `to` is earlier.
pub(crate) fn between(from: DateTime<Utc>, to: DateTime<Utc>) -> Duration {
    (to - from).to_std().unwrap_or_default()
}

/// The moment that is `span` before `at`, or `at` if the calendar does not reach that far: a store may tell any age.
pub(crate) fn before(at: DateTime<Utc>, span: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(span).ok().and_then(|span| at.checked_sub_signed(span)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_beyond_the_calendar_is_no_panic() {
        let now = DateTime::UNIX_EPOCH + Duration::from_secs(100);
        assert_eq!(before(now, Duration::from_secs(40)), DateTime::UNIX_EPOCH + Duration::from_secs(60));
        assert_eq!(before(now, Duration::from_secs(u64::MAX / 2)), now);
        assert_eq!(before(now, Duration::MAX), now);
    }

    #[test]
    fn spans_have_their_largest_units() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (299, "4 min"),
            (3_600, "1 h"),
            (12_000, "3 h 20 min"),
            (86_400, "1 day"),
            (2 * 86_400 + 3_700, "2 days 1 h"),
        ] {
            assert_eq!(words(&Duration::from_secs(seconds)), text);
        }
    }
}
