//! Terms on a line of time, as a drawing.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::{between, words};
use crate::history::Term;
use crate::output::escape::cut;

/// The width of the drawing, in its own units.
const WIDTH: u32 = 1000;

/// The least width of a term that can still be seen.
const LEAST: u32 = 4;

/// The number of colours for names. The style has one for each.
const COLOURS: u32 = 6;

/// The longest name in the description of a term.
const NAME: usize = 40;

/// The length of a term, or until now if it lasts, in words.
pub(crate) fn lasted(term: &Term, now: &DateTime<Utc>) -> String {
    let end = end(term, None, *now);
    words(&between(term.since.unwrap_or(end), end))
}

/// The end of a term on the line. The lock of a session has no end that its holder has written: it ended before the next.
fn end(term: &Term, next: Option<&Term>, now: DateTime<Utc>) -> DateTime<Utc> {
    let known = || term.until().or_else(|| next?.since).or(term.since);
    term.ended.as_ref().and_then(|_| known()).unwrap_or(now)
}

fn in_words(term: &Term, end: DateTime<Utc>) -> String {
    let (who, length) = (cut(&term.holder, NAME), words(&between(term.since.unwrap_or(end), end)));
    match &term.ended {
        None => format!("{who} has led for {length}"),
        Some(reason) => format!("{who} led for {length}: {reason}"),
    }
}

/// The colour that a name has where no other name has it.
fn favourite(name: &str) -> u32 {
    name.bytes().fold(0, |sum: u32, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % COLOURS
}

/// The colours of terms, in their order. Names have colours of their own, as long as there are no more names than colours,
/// and a name has the same colour on every page, unless it shares a line with a name that has taken that colour.
fn colours<'a>(terms: &'a [Term]) -> Vec<u32> {
    let mut known: BTreeMap<&'a str, u32> = BTreeMap::new();
    let mut last = None;
    let colour_of = |term: &'a Term| {
        let wheel = || (0..COLOURS).map(|turn| (favourite(&term.holder) + turn) % COLOURS);
        let unused = wheel().find(|colour| !known.values().any(|used| used == colour));
        let other = || wheel().find(|colour| Some(*colour) != last).unwrap_or_default();
        let colour = *known.entry(&term.holder).or_insert_with(|| unused.unwrap_or_else(other));
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
        let nexts = terms.iter().skip(1).map(Some).chain([None]);
        let bar = |((term, next), colour): ((&Term, Option<&Term>), u32)| {
            let end = end(term, next, now);
            let (x, last) = (place(term.since.unwrap_or(end)).min(WIDTH - LEAST), place(end));
            Bar { x, width: last.saturating_sub(x).max(LEAST), colour, text: in_words(term, end) }
        };
        Self { bars: terms.iter().zip(nexts).zip(colours(terms)).map(bar).collect() }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leaderelection::TermEndReason;

    use super::*;

    #[test]
    fn terms_have_their_places_and_even_the_shortest_is_seen() {
        let at = |seconds| DateTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let mut terms = [
            Term::begin("a", Some(1.into()), at(0)),
            Term::begin("b", Some(2.into()), at(50)),
            Term::begin("a", Some(3.into()), at(100)),
        ];
        terms[0].end(at(25), TermEndReason::Released);
        terms[1].end(at(50), TermEndReason::Deleted);
        let bars = Timeline::of(&terms, at(0), at(100)).bars;
        let places: Vec<_> = bars.iter().map(|bar| (bar.x, bar.width)).collect();
        assert_eq!(places, [(0, 250), (500, LEAST), (WIDTH - LEAST, LEAST)]);
        assert_eq!(bars[0].text, "a led for 25 s: the lease was released");
        assert_eq!(bars[2].text, "a has led for 0 s");
        assert_eq!(bars[0].colour, bars[2].colour);
        assert_ne!(bars[0].colour, bars[1].colour);
        terms[2].end(at(103), TermEndReason::Released);
        assert_eq!(lasted(&terms[2], &at(200)), "3 s", "the last term has ended");
        // A clock that was set back makes no drawing that does not fit.
        assert!(Timeline::of(&terms, at(90), at(10)).bars.iter().all(|bar| bar.x + bar.width <= WIDTH));
    }

    #[test]
    fn leaders_that_share_a_line_do_not_share_a_colour() {
        let term = |name: &str| Term::begin(name, None, DateTime::UNIX_EPOCH);
        let (mut same, mut all) = (vec![term("a"), term("g")], vec![]);
        assert_eq!(favourite("a"), favourite("g"), "or the test is about nothing");
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
