//! Terms on a line of time, as a drawing.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use leaderelection::FencingToken;

use super::{between, words};
use crate::output::plain::cut;

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
    pub(crate) token: Option<FencingToken>,
    pub(crate) from: DateTime<Utc>,
    /// `None` while the term lasts.
    pub(crate) until: Option<DateTime<Utc>>,
    /// The reason for the end, as far as it is known.
    pub(crate) end: Option<String>,
}

impl Term {
    pub(crate) fn begin(who: &str, token: Option<FencingToken>, from: DateTime<Utc>) -> Self {
        Self { who: who.to_owned(), token, from, until: None, end: None }
    }

    /// Ends the term, unless it has ended.
    pub(crate) fn end(&mut self, at: DateTime<Utc>, reason: &impl ToString) {
        if self.until.is_none() {
            (self.until, self.end) = (Some(at.max(self.from)), Some(reason.to_string()));
        }
    }

    /// The length of the term until now, in words.
    pub(crate) fn lasted(&self, now: &DateTime<Utc>) -> String {
        words(&between(self.from, self.until.unwrap_or(*now)))
    }

    /// The colour that the name has where no other name has it.
    fn favourite(&self) -> u32 {
        self.who.bytes().fold(0, |sum: u32, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % COLOURS
    }

    fn in_words(&self, now: DateTime<Utc>) -> String {
        let (who, length) = (cut(&self.who, NAME), self.lasted(&now));
        match (self.until, &self.end) {
            (None, _) => format!("{who} has led for {length}"),
            (Some(_), Some(reason)) => format!("{who} led for {length}: {reason}"),
            (Some(_), None) => format!("{who} led for {length}"),
        }
    }
}

/// The colours of terms, in their order. Names have colours of their own, as long as there are no more names than colours,
/// and a name has the same colour on every page, unless it shares a line with a name that has taken that colour.
fn colours<'a>(terms: &'a [Term]) -> Vec<u32> {
    let mut known: BTreeMap<&'a str, u32> = BTreeMap::new();
    let mut last = None;
    let colour_of = |term: &'a Term| {
        let wheel = || (0..COLOURS).map(|turn| (term.favourite() + turn) % COLOURS);
        let unused = wheel().find(|colour| !known.values().any(|used| used == colour));
        let other = || wheel().find(|colour| Some(*colour) != last).unwrap_or_default();
        let colour = *known.entry(&term.who).or_insert_with(|| unused.unwrap_or_else(other));
        last = Some(colour);
        colour
    };
    terms.iter().map(colour_of).collect()
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
        let bar = |(term, colour): (&Term, u32)| {
            let (x, end) = (place(term.from), place(term.until.unwrap_or(now)));
            let x = x.min(WIDTH - LEAST);
            Bar { x, width: end.saturating_sub(x).max(LEAST), colour, text: term.in_words(now) }
        };
        Self { bars: terms.iter().zip(colours(terms)).map(bar).collect() }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn terms_have_their_places_and_even_the_shortest_is_seen() {
        let at = |seconds| DateTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let mut terms = [
            Term::begin("a", Some(1.into()), at(0)),
            Term::begin("b", Some(2.into()), at(50)),
            Term::begin("a", Some(3.into()), at(100)),
        ];
        terms[0].end(at(25), &"released");
        terms[1].end(at(50), &"taken over");
        let bars = Timeline::of(&terms, at(0), at(100)).bars;
        let places: Vec<_> = bars.iter().map(|bar| (bar.x, bar.width)).collect();
        assert_eq!(places, [(0, 250), (500, LEAST), (WIDTH - LEAST, LEAST)]);
        assert_eq!(bars[0].text, "a led for 25 s: released");
        assert_eq!(bars[2].text, "a has led for 0 s");
        assert_eq!(bars[0].colour, bars[2].colour);
        assert_ne!(bars[0].colour, bars[1].colour);
        // A clock that was set back makes no drawing that does not fit.
        assert!(Timeline::of(&terms, at(90), at(10)).bars.iter().all(|bar| bar.x + bar.width <= WIDTH));
    }

    #[test]
    fn leaders_that_share_a_line_do_not_share_a_colour() {
        let term = |name: &str| Term::begin(name, None, DateTime::UNIX_EPOCH);
        let (mut same, mut all) = (vec![term("a"), term("g")], vec![]);
        assert_eq!(same[0].favourite(), same[1].favourite(), "or the test is about nothing");
        same.push(term("a"));
        let seen = colours(&same);
        assert!(seen[0] != seen[1] && seen[0] == seen[2], "{seen:?}");
        for number in 0..20 {
            all.push(term(&number.to_string()));
        }
        let seen = colours(&all);
        let first: std::collections::BTreeSet<_> = seen.iter().take(COLOURS as usize).collect();
        assert_eq!(first.len(), COLOURS as usize, "{seen:?}");
        assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "{seen:?}");
    }
}
