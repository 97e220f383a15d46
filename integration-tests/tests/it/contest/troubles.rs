//! The times in which servers did not answer and contenders were disturbed, and what follows for the leaders.

use std::time::Duration;

use leaderelection::Timings;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::timings::JITTER_FACTOR;

use super::verdict::Window;

/// The time that a signal takes to stop all threads of a process.
const REACTION: Duration = Duration::from_millis(200);

/// A part or a contender that is in trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whom {
    Part(usize),
    /// The contender in this slot, whichever process that is.
    Contender(usize),
}

/// A trouble. It surely lasts from `applied` until `healing`, and surely not before `began` and behind `healed`.
#[derive(Clone, Copy, Debug)]
struct Trouble {
    whom: Whom,
    began: LocalInstant,
    applied: LocalInstant,
    healing: LocalInstant,
    healed: LocalInstant,
}

const NEVER: LocalInstant = LocalInstant::from_nanos(u64::MAX);

pub(super) type Span = (LocalInstant, LocalInstant);

/// All troubles of a contest.
#[derive(Clone, Debug, Default)]
pub(super) struct Troubles(Vec<Trouble>);

impl Troubles {
    /// Notes a trouble that was applied since `began`.
    pub(super) fn begin(&mut self, whom: Whom, began: LocalInstant) {
        self.0.push(Trouble { whom, began, applied: SystemClock.now(), healing: NEVER, healed: NEVER });
    }

    /// Notes a trouble that has lasted since `began`, and is over.
    pub(super) fn passed(&mut self, whom: Whom, began: LocalInstant) {
        let now = SystemClock.now();
        self.0.push(Trouble { whom, began, applied: now, healing: now, healed: now });
    }

    /// Notes that all troubles of somebody were healed since `healing`.
    pub(super) fn end(&mut self, whom: Whom, healing: LocalInstant) {
        let healed = SystemClock.now();
        let open = self.0.iter_mut().filter(|trouble| trouble.whom == whom && trouble.healed == NEVER);
        open.for_each(|trouble| (trouble.healing, trouble.healed) = (healing, healed));
    }

    /// Notes that somebody was slow in a span without being disturbed. A part that is slow may still answer somebody, so it is
    /// not surely lost. The others have to lead in the place of a contender that is slow.
    pub(super) fn slow(&mut self, whom: Whom, (from, until): Span) {
        let applied = match whom {
            Whom::Part(_) => until,
            Whom::Contender(_) => from,
        };
        self.0.push(Trouble { whom, began: from, applied, healing: until, healed: until });
    }

    /// The spans in which a part may not have answered, with the parts.
    fn perhaps(&self) -> Vec<(usize, Span)> {
        self.parts(|trouble| (trouble.began, trouble.healed))
    }

    /// The spans in which a part surely has not answered, with the parts.
    fn surely(&self) -> Vec<(usize, Span)> {
        self.parts(|trouble| (trouble.applied, trouble.healing))
    }

    fn parts(&self, span: impl Fn(&Trouble) -> Span) -> Vec<(usize, Span)> {
        let of_part = |trouble: &Trouble| match trouble.whom {
            Whom::Part(part) => Some((part, span(trouble))),
            Whom::Contender(_) => None,
        };
        self.0.iter().filter_map(of_part).collect()
    }

    /// The spans in which something happened to a contender.
    fn disturbances(&self) -> impl Iterator<Item = Span> {
        let of_contenders = self.0.iter().filter(|trouble| matches!(trouble.whom, Whom::Contender(_)));
        of_contenders.flat_map(|trouble| [(trouble.began, trouble.applied), (trouble.healing, trouble.healed)])
    }

    fn concerns(&self, slot: usize, (from, until): Span) -> bool {
        let mut own = self.0.iter().filter(|trouble| trouble.whom == Whom::Contender(slot));
        own.any(|trouble| trouble.began <= until && trouble.healed >= from)
    }
}

/// A write that a part has carried out.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartWrite {
    pub(super) part: usize,
    pub(super) token: u64,
    pub(super) at: LocalInstant,
}

/// A contest on several servers, from its first leader to the moment at which all was calm.
pub(super) struct Course<'a> {
    pub(super) troubles: &'a Troubles,
    pub(super) parts: usize,
    pub(super) timings: Timings,
    /// The time that requests and timers may add to the protocol's bounds.
    pub(super) tolerance: Duration,
    pub(super) windows: &'a [Window],
    /// The slot of each window's process.
    pub(super) slots: &'a [usize],
    /// The writes of all parts.
    pub(super) writes: &'a [PartWrite],
    pub(super) span: Span,
}

/// The facts that a contest has shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) problems: Vec<String>,
    /// The losses of a part, for a lease and longer, that a term has survived.
    pub(super) survived: usize,
    /// The losses of a majority, for a renew deadline and longer.
    pub(super) leaderless: usize,
    /// The longest time without a leader while a majority answered and nothing happened to a contender.
    pub(super) longest_gap: Duration,
    /// The stretches of such a time that were longer than the bound.
    pub(super) stretches: usize,
}

impl Course<'_> {
    pub(super) fn show(&self) -> Shown {
        let mut shown = Shown::default();
        self.gaps(&mut shown);
        self.ends(&mut shown);
        self.leaderless(&mut shown);
        let is_survived = |(from, until): Span| {
            let lasts = until.saturating_since(from) >= self.timings.lease_duration();
            lasts && self.windows.iter().any(|window| window.from < from && until < window.until)
        };
        shown.survived = self.troubles.surely().into_iter().filter(|(_, span)| is_survived(*span)).count();
        shown
    }

    fn quorum(&self) -> usize {
        self.parts / 2 + 1
    }

    /// The sets of parts that suffice for a leader.
    fn majorities(&self) -> impl Iterator<Item = Vec<usize>> {
        let sets = (0_u32..1 << self.parts).filter(|set| set.count_ones() as usize == self.quorum());
        sets.map(|set| (0..self.parts).filter(|part| set & (1 << part) != 0).collect())
    }

    /// The longest time until somebody leads: a request that hangs, the pause before the next read, and a lease from there.
    fn bound(&self) -> Duration {
        let poll = self.timings.retry_period().mul_f64(1.0 + JITTER_FACTOR);
        self.timings.request_timeout() + poll + self.timings.lease_duration() + self.tolerance
    }

    /// Nobody leads for no longer than the bound while the same majority answers and nothing happens to a contender.
    fn gaps(&self, shown: &mut Shown) {
        let leaderless = without(self.windows.iter().map(|window| (window.from, window.until)).collect(), self.span);
        for those in self.majorities() {
            let of_those = self.troubles.perhaps().into_iter().filter(|(part, _)| those.contains(part));
            let bad = of_those.map(|(_, span)| span).chain(self.troubles.disturbances()).collect();
            for stretch in without(bad, self.span) {
                shown.stretches += usize::from(length(stretch) > self.bound());
                let gap = leaderless.iter().map(|gap| length((gap.0.max(stretch.0), gap.1.min(stretch.1)))).max();
                let gap = gap.unwrap_or_default();
                shown.longest_gap = shown.longest_gap.max(gap);
                if gap > self.bound() {
                    let (from, until) = (stretch.0.as_nanos(), stretch.1.as_nanos());
                    shown.problems.push(format!(
                        "nobody leads for {gap:?} although the parts {those:?} answer from {from} to {until}"
                    ));
                }
            }
        }
    }

    /// A term ends because something happened to its process, or because no majority has answered for all of a lease. A leader does not
    /// write a part with a token above its own, so it does without that part until the end of its term.
    fn ends(&self, shown: &mut Shown) {
        for (window, slot) in self.windows.iter().zip(self.slots).filter(|(window, _)| window.until < self.span.1) {
            let before = self.timings.lease_duration() + self.tolerance;
            let from = LocalInstant::from_nanos(window.until.as_nanos().saturating_sub(as_nanos(before)));
            let around = (from, window.until + self.tolerance);
            let perhaps = self.troubles.perhaps();
            let is_above = |write: &PartWrite| write.token > window.token && write.at < window.until;
            let is_missing = |part: &usize| {
                perhaps.iter().any(|(other, span)| other == part && meet(*span, around))
                    || self.writes.iter().any(|write| write.part == *part && is_above(write))
            };
            let answers = self.majorities().any(|those| !those.iter().any(is_missing));
            if answers && !self.troubles.concerns(*slot, around) {
                shown.problems.push(format!("a term ended although a majority answered: {window}"));
            }
        }
    }

    /// Nobody leads a renew deadline after too few parts have answered.
    fn leaderless(&self, shown: &mut Shown) {
        let surely = self.troubles.surely();
        let mut moments: Vec<_> = surely.iter().flat_map(|(_, (from, until))| [*from, *until]).collect();
        moments.sort_unstable();
        let is_lost = |from: LocalInstant, until: LocalInstant| {
            let covers =
                |part: usize| surely.iter().any(|(lost, span)| *lost == part && span.0 <= from && until <= span.1);
            (0..self.parts).filter(|part| covers(*part)).count() > self.parts - self.quorum()
        };
        let mut losses: Vec<Span> = Vec::new();
        for pair in moments.windows(2).filter(|pair| pair[0] < pair[1] && is_lost(pair[0], pair[1])) {
            match losses.last_mut().filter(|last| last.1 == pair[0]) {
                Some(last) => last.1 = pair[1],
                None => losses.push((pair[0], pair[1])),
            }
        }
        for (from, until) in losses {
            let ends_by = from + self.timings.renew_deadline() + REACTION;
            if ends_by >= until {
                continue;
            }
            shown.leaderless += 1;
            let leads = self.windows.iter().filter(|window| meet((window.from, window.until), (ends_by, until)));
            shown.problems.extend(leads.map(|window| {
                format!(
                    "a leader while no majority answers, from {} to {}: {window}",
                    from.as_nanos(),
                    until.as_nanos()
                )
            }));
        }
    }
}

/// Returns the rest of a span without others.
fn without(mut others: Vec<Span>, (from, until): Span) -> Vec<Span> {
    others.sort_unstable();
    let (mut left, mut at) = (Vec::new(), from);
    for other in others {
        if other.0.min(until) > at {
            left.push((at, other.0.min(until)));
        }
        at = at.max(other.1);
    }
    if at < until {
        left.push((at, until));
    }
    left
}

fn meet(one: Span, other: Span) -> bool {
    one.0 <= other.1 && other.0 <= one.1
}

fn length((from, until): Span) -> Duration {
    until.saturating_since(from)
}

fn as_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn at(seconds: u64) -> LocalInstant {
    LocalInstant::from_nanos(seconds * 1_000_000_000)
}

fn trouble(whom: Whom, from: u64, until: u64) -> Trouble {
    let [from, until] = [from, until].map(at);
    Trouble { whom, began: from, applied: from, healing: until, healed: until }
}

fn window(process: usize, from: u64, until: u64) -> Window {
    Window { token: process as u64, process, from: at(from), until: at(until) }
}

/// A contest of a hundred seconds on three parts, in which the process of each slot has its number.
fn shown(troubles: Vec<Trouble>, windows: &[Window]) -> Shown {
    shown_beside(troubles, windows, &[])
}

fn shown_beside(troubles: Vec<Trouble>, windows: &[Window], writes: &[PartWrite]) -> Shown {
    let timings = Timings::new(Duration::from_secs(15), Duration::from_secs(10), Duration::from_secs(2));
    let slots: Vec<_> = windows.iter().map(|window| window.process).collect();
    let course = Course {
        troubles: &Troubles(troubles),
        parts: 3,
        timings: timings.expect("timings that fit"),
        tolerance: Duration::from_secs(1),
        windows,
        slots: &slots,
        writes,
        span: (at(0), at(100)),
    };
    course.show()
}

#[test]
fn a_leader_goes_on_without_one_part() {
    let shown = shown(vec![trouble(Whom::Part(1), 20, 50)], &[window(0, 0, 101)]);
    assert_eq!((shown.problems, shown.survived, shown.stretches), (Vec::new(), 1, 3));
}

#[test]
fn a_term_that_ends_by_itself_fails() {
    let windows = [window(0, 0, 50), window(1, 51, 101)];
    assert!(shown(vec![trouble(Whom::Part(1), 20, 60)], &windows).problems[0].starts_with("a term ended although"));
    // Its process was killed, or a second part was lost.
    for whom in [Whom::Contender(0), Whom::Part(2)] {
        let troubles = vec![trouble(Whom::Part(1), 20, 60), trouble(whom, 44, 45)];
        assert_eq!(shown(troubles, &windows).problems, Vec::<String>::new());
    }
}

#[test]
fn a_part_above_a_term_is_none_of_its_parts() {
    let windows = [window(3, 0, 50), window(4, 51, 101)];
    let problems = |token, at_seconds| {
        let above = PartWrite { part: 2, token, at: at(at_seconds) };
        shown_beside(vec![trouble(Whom::Part(1), 20, 60)], &windows, &[above]).problems.len()
    };
    assert_eq!([problems(4, 40), problems(3, 40), problems(4, 51)], [0, 1, 1]);
}

#[test]
fn a_slow_machine_ends_a_term_and_excuses_nobody_else() {
    let slow = |whom, from, until| {
        let mut troubles = Troubles(vec![trouble(Whom::Part(1), 20, 60)]);
        troubles.slow(whom, (at(from), at(until)));
        troubles.0
    };
    let ends = [window(0, 0, 50), window(1, 51, 101)];
    for whom in [Whom::Contender(0), Whom::Part(2)] {
        assert_eq!(shown(slow(whom, 44, 49), &ends).problems, Vec::<String>::new());
    }
    assert!(shown(slow(Whom::Contender(1), 44, 49), &ends).problems[0].starts_with("a term ended although"));
    // The others wait in vain for a contender that is slow for all the time, or nobody is late who needs a slow part.
    let late = [window(0, 0, 50), window(1, 75, 101)];
    let problems = shown(slow(Whom::Contender(0), 50, 75), &late).problems;
    assert!(problems[0].starts_with("nobody leads for 25s"), "{problems:?}");
    let found = shown(slow(Whom::Part(2), 30, 90), &[window(0, 0, 101)]);
    assert_eq!((found.problems, found.leaderless), (Vec::new(), 0));
}

#[test]
fn a_gap_that_is_too_long_fails() {
    let killed = || vec![trouble(Whom::Contender(0), 30, 31)];
    // A request timeout of 2.5 s, a pause of 4.4 s, a lease of 15 s, and the tolerance.
    let found = shown(killed(), &[window(0, 0, 30), window(1, 54, 101)]);
    assert!(found.problems[0].starts_with("nobody leads for 23s"), "{found:?}");
    let found = shown(killed(), &[window(0, 0, 30), window(1, 53, 101)]);
    assert_eq!((found.problems, found.longest_gap), (Vec::new(), Duration::from_secs(22)));
    // Somebody was disturbed meanwhile, or two parts were lost.
    for whom in [Whom::Contender(1), Whom::Part(1)] {
        let troubles = [killed(), vec![trouble(whom, 40, 41), trouble(Whom::Part(2), 29, 60)]].concat();
        assert_eq!(shown(troubles, &[window(0, 0, 30), window(1, 60, 101)]).problems, Vec::<String>::new());
    }
}

#[test]
fn a_leader_without_a_majority_fails() {
    let lost = || vec![trouble(Whom::Part(1), 20, 80), trouble(Whom::Part(2), 30, 60)];
    let found = shown(lost(), &[window(0, 0, 40), window(1, 75, 101)]);
    assert_eq!((found.problems, found.leaderless), (Vec::new(), 1));
    let found = shown(lost(), &[window(0, 0, 41), window(1, 75, 101)]);
    assert!(found.problems[0].starts_with("a leader while no majority answers"), "{found:?}");
}
