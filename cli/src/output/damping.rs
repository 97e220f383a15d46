//! Messages of the log that repeat: told once, and then counted.
//!
//! An elector tries again several times a second. The reason for which it fails is the same each time.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter};

use super::stderr::Stderr;
use crate::plain::plain;

/// The time after which a message is told again.
const PERIOD: Duration = Duration::from_secs(10);

/// The number of different messages that are remembered.
const MOST: usize = 64;

/// Hides warnings and errors that were told less than [`PERIOD`] ago.
#[derive(Debug)]
pub(super) struct Damping {
    stderr: Stderr,
    told: Mutex<Told>,
}

impl Damping {
    pub(super) fn new(stderr: Stderr) -> Self {
        Self { stderr, told: Mutex::default() }
    }
}

impl<S: Subscriber> Filter<S> for Damping {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        if *event.metadata().level() > Level::WARN {
            return true;
        }
        let mut text = Text::default();
        event.record(&mut text);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let now = SystemClock.now();
        for (message, times, span) in told.take_counts(now) {
            let (message, span) = (plain(message), span.as_secs());
            self.stderr.text(format!("leaderelect: the same again, {times} times in {span}s: {message}\n"));
        }
        told.is_news(text.0, now)
    }
}

/// The messages that were told a short while ago.
#[derive(Debug, Default)]
struct Told(HashMap<String, Repeated>);

#[derive(Debug)]
struct Repeated {
    told_at: LocalInstant,
    times: u64,
}

impl Told {
    /// Returns `true` if the message is to be told; counts it otherwise.
    fn is_news(&mut self, message: String, now: LocalInstant) -> bool {
        if let Some(repeated) = self.0.get_mut(&message) {
            repeated.times += 1;
            return false;
        }
        if self.0.len() < MOST {
            self.0.insert(message, Repeated { told_at: now, times: 0 });
        }
        true
    }

    /// Forgets the messages whose time is over, and returns those that were repeated in it.
    fn take_counts(&mut self, now: LocalInstant) -> Vec<(String, u64, Duration)> {
        let over = self.0.extract_if(|_, repeated| now.saturating_since(repeated.told_at) >= PERIOD);
        let counts = over.map(|(message, repeated)| (message, repeated.times, now.saturating_since(repeated.told_at)));
        counts.filter(|(_, times, _)| *times > 0).collect()
    }
}

/// A message and its fields.
#[derive(Debug, Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let separator = if self.0.is_empty() { "" } else { " " };
        // A string takes all that is written to it.
        let _ = match field.name() {
            "message" => write!(self.0, "{separator}{value:?}"),
            name => write!(self.0, "{separator}{name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_told_once_a_period_and_counted_in_between() {
        let mut told = Told::default();
        let at = |seconds| LocalInstant::from_nanos(0) + Duration::from_secs(seconds);
        let mut tell = |message: &str, seconds| {
            let counts = told.take_counts(at(seconds));
            (counts, told.is_news(message.to_owned(), at(seconds)))
        };
        assert_eq!(tell("a", 0), (vec![], true));
        assert_eq!(tell("b", 1), (vec![], true));
        for second in 1..10 {
            assert_eq!(tell("a", second), (vec![], false));
        }
        assert_eq!(tell("a", 12), (vec![("a".to_owned(), 9, Duration::from_secs(12))], true), "b came once");
        assert_eq!(tell("b", 12), (vec![], true));
    }

    #[test]
    fn messages_that_never_repeat_take_no_room_for_ever() {
        let mut told = Told::default();
        for number in 0..1_000 {
            assert!(told.is_news(number.to_string(), LocalInstant::from_nanos(0)));
        }
        assert_eq!(told.0.len(), MOST);
        assert_eq!(told.take_counts(LocalInstant::from_nanos(0) + PERIOD), []);
        assert!(told.0.is_empty());
    }
}
