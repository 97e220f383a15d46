//! Terms on a line of time, as a drawing.

use chrono::{DateTime, Utc};

use super::{between, words};
use crate::plain::cut;

/// The width of the drawing, in its own units.
const WIDTH: u32 = 1000;

/// The least width of a term that can still be seen.
const LEAST: u32 = 4;

/// The number of colours for names. The style has one for each.
const COLOURS: u32 = 6;

/// The longest name in the description of a term.
const NAME: usize = 40;

/// A term of leadership, as this process saw it by its own wall clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    pub(crate) who: String,
    pub(crate) token: Option<u64>,
    pub(crate) from: DateTime<Utc>,
    /// `None` while the term goes on.
    pub(crate) until: Option<DateTime<Utc>>,
    /// The reason for the end, as far as it is known.
    pub(crate) end: Option<String>,
}

impl Term {
    pub(crate) fn begin(who: &str, token: Option<u64>, from: DateTime<Utc>) -> Self {
        Self { who: who.to_owned(), token, from, until: None, end: None }
    }

    /// Ends the term, unless it has ended.
    pub(crate) fn end(&mut self, at: DateTime<Utc>, reason: &str) {
        if self.until.is_none() {
            (self.until, self.end) = (Some(at), Some(reason.to_owned()));
        }
    }

    /// The length of the term until now, in words.
    pub(crate) fn lasted(&self, now: &DateTime<Utc>) -> String {
        words(&between(self.from, self.until.unwrap_or(*now)))
    }

    /// The number of the name's colour. The same name has the same colour on every page.
    pub(crate) fn colour(&self) -> u32 {
        self.who.bytes().fold(0, |sum: u32, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % COLOURS
    }

    fn in_words(&self, now: DateTime<Utc>) -> String {
        let Self { until, end, .. } = self;
        let length = self.lasted(&now);
        let end = match (until, end) {
            (None, _) => ", and goes on".to_owned(),
            (Some(_), Some(reason)) => format!(": {reason}"),
            (Some(_), None) => String::new(),
        };
        format!("{} for {length}{end}", cut(&self.who, NAME))
    }
}

/// The terms between two moments. A gap between two terms is a time without a leader.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    pub(crate) bars: Vec<Bar>,
}

/// A term on the line.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) x: u32,
    pub(crate) width: u32,
    pub(crate) colour: u32,
    pub(crate) text: String,
}

impl Timeline {
    pub(crate) fn of(terms: &[Term], from: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        let whole = between(from, now).as_secs_f64().max(f64::EPSILON);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the share is at most 1")]
        let place = |at: DateTime<Utc>| {
            let share = (between(from, at).as_secs_f64() / whole).min(1.0);
            (share * f64::from(WIDTH)).round() as u32
        };
        let bar = |term: &Term| {
            let (x, end) = (place(term.from), place(term.until.unwrap_or(now)));
            let x = x.min(WIDTH - LEAST);
            Bar { x, width: end.saturating_sub(x).max(LEAST), colour: term.colour(), text: term.in_words(now) }
        };
        Self { bars: terms.iter().map(bar).collect() }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn terms_have_their_places_and_even_the_shortest_is_seen() {
        let at = |seconds| DateTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let mut terms =
            [Term::begin("a", Some(1), at(0)), Term::begin("b", Some(2), at(50)), Term::begin("a", Some(3), at(100))];
        terms[0].end(at(25), "released");
        terms[1].end(at(50), "taken over");
        let bars = Timeline::of(&terms, at(0), at(100)).bars;
        let places: Vec<_> = bars.iter().map(|bar| (bar.x, bar.width)).collect();
        assert_eq!(places, [(0, 250), (500, LEAST), (WIDTH - LEAST, LEAST)]);
        assert_eq!(bars[0].text, "a for 25 s: released");
        assert_eq!(bars[2].text, "a for 0 s, and goes on");
        assert_eq!(bars[0].colour, bars[2].colour);
        assert_ne!(bars[0].colour, bars[1].colour);
        // A clock that was set back makes no drawing that does not fit.
        assert!(Timeline::of(&terms, at(90), at(10)).bars.iter().all(|bar| bar.x + bar.width <= WIDTH));
    }
}
