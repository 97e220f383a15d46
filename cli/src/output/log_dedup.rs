//! Messages of the log that repeat: written once, and then counted.
//!
//! An elector tries again several times a second. The reason for which it fails is the same each time.

use std::collections::HashMap;
use std::time::Duration;

use leaderelection::clock::LocalInstant;

use super::line::Line;

/// The time after which a message that repeats is counted, and after which a message that does not is forgotten.
const PERIOD: Duration = Duration::from_secs(10);

/// The number of different messages that are remembered.
const MOST: usize = 64;

/// The warnings and errors that were written a short while ago.
#[derive(Debug, Default)]
pub(super) struct LogDedup(HashMap<String, Repeated>);

#[derive(Debug)]
struct Repeated {
    line: Line,
    /// The last line about it.
    told_at: LocalInstant,
    /// The last occurrence.
    seen_at: LocalInstant,
    /// The occurrences since the last line about it.
    times: u64,
}

impl Repeated {
    /// The line that counts the occurrences since the last line, and tells how long ago they ended, because a count may come late.
    fn count(&self, now: LocalInstant) -> Option<Line> {
        let Self { line, times, .. } = self;
        let what = match times {
            0 => return None,
            1 => "once more".to_owned(),
            _ => format!("{times} times in {} s", seconds(self.seen_at.saturating_since(self.told_at))),
        };
        let ended = match seconds(now.saturating_since(self.seen_at)) {
            0 => String::new(),
            ago => format!(", until {ago} s ago"),
        };
        Some(Line { message: format!("the same error, {what}{ended}: {}", line.message), ..line.clone() })
    }
}

/// The nearest number of seconds.
fn seconds(time: Duration) -> u64 {
    (time + Duration::from_millis(500)).as_secs()
}

impl LogDedup {
    /// Returns the lines to write when a warning or an error has occurred: itself, if it is news, or a count.
    pub(super) fn on(&mut self, line: Line, now: LocalInstant) -> Vec<Line> {
        let mut lines = self.forget_old(now);
        let key = format!("{} {:?}", line.message, line.fields);
        if let Some(known) = self.0.get_mut(&key) {
            known.times += 1;
            known.seen_at = now;
            if now.saturating_since(known.told_at) >= PERIOD {
                lines.extend(known.count(now));
                (known.told_at, known.times) = (now, 0);
            }
            return lines;
        }
        lines.push(line.clone());
        if self.0.len() < MOST {
            self.0.insert(key, Repeated { line, told_at: now, seen_at: now, times: 0 });
        }
        lines
    }

    /// Forgets what has not occurred for a while, and returns its last count.
    pub(super) fn forget_old(&mut self, now: LocalInstant) -> Vec<Line> {
        let old = self.0.extract_if(|_, repeated| now.saturating_since(repeated.seen_at) >= PERIOD);
        old.filter_map(|(_, repeated)| repeated.count(now)).collect()
    }

    /// Forgets everything, and returns the last counts.
    pub(super) fn forget_all(&mut self, now: LocalInstant) -> Vec<Line> {
        self.0.drain().filter_map(|(_, repeated)| repeated.count(now)).collect()
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    fn at(seconds: u64) -> LocalInstant {
        LocalInstant::from_nanos(0) + Duration::from_secs(seconds)
    }

    fn texts(lines: Vec<Line>) -> Vec<String> {
        lines.into_iter().map(|line| line.message).collect()
    }

    fn tell(damping: &mut LogDedup, message: &str, seconds: u64) -> Vec<String> {
        texts(damping.on(Line::said(Level::WARN, message), at(seconds)))
    }

    #[test]
    fn a_message_is_told_once_and_then_counted() {
        let mut damping = LogDedup::default();
        assert_eq!(tell(&mut damping, "a", 0), ["a"]);
        assert_eq!(tell(&mut damping, "b", 1), ["b"]);
        for second in 1..10 {
            assert!(tell(&mut damping, "a", second).is_empty());
        }
        assert_eq!(tell(&mut damping, "a", 10), ["the same error, 10 times in 10 s: a"]);
        assert!(tell(&mut damping, "a", 15).is_empty());
        assert_eq!(tell(&mut damping, "a", 22), ["the same error, 2 times in 12 s: a"]);
        assert_eq!(tell(&mut damping, "b", 23), ["b"], "it is news again");
    }

    #[test]
    fn the_last_count_is_told_when_the_message_no_longer_repeats() {
        let mut damping = LogDedup::default();
        for second in 0..4 {
            tell(&mut damping, "a", second);
        }
        assert!(damping.forget_old(at(12)).is_empty());
        assert_eq!(texts(damping.forget_old(at(13))), ["the same error, 3 times in 3 s, until 10 s ago: a"]);
        tell(&mut damping, "a", 14);
        tell(&mut damping, "a", 15);
        assert_eq!(texts(damping.forget_all(at(15))), ["the same error, once more: a"]);
        assert!(damping.forget_all(at(15)).is_empty());
    }

    #[test]
    fn messages_that_never_repeat_are_forgotten() {
        let mut damping = LogDedup::default();
        for number in 0..1_000 {
            assert_eq!(tell(&mut damping, &number.to_string(), 0).len(), 1);
        }
        assert_eq!(damping.0.len(), MOST);
        assert!(damping.forget_old(at(10)).is_empty());
        assert!(damping.0.is_empty());
    }
}
