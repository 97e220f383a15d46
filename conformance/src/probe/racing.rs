//! Races of many writers with the same precondition, of which exactly one must win.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use leaderelection::implement::{Precondition, Version};
use leaderelection::{StoreError, StoreErrorKind};

use super::calls::Prober;
use super::check::{Finding, Stopped};
use super::sequential::shown;
use crate::contract::{Breach, LINEARIZABLE_WRITE};
use crate::patience::TRIES;
use crate::race::{self, Answer, Refusal};

/// The races of a round, as numbers of writers and of races. The widest race opens the connections.
///
/// A store that checks a condition and writes a moment later is caught if a second writer comes between the two. In a
/// narrow race, nothing but that moment decides, so many narrow races find a short moment. A wide race finds stores that
/// are wrong only under load: with a queue, with several processes, or with a thread for each connection.
const CREATORS: &[(usize, usize)] = &[(64, 1), (4, 1), (2, 2)];
/// A race of creators costs three requests besides its writers, and most races of updaters none. Most narrow races are
/// therefore of updaters.
const UPDATERS: &[(usize, usize)] = &[(64, 1), (16, 1), (4, 4), (2, 44)];

/// The number of objects that updaters race for in turn, so that a store with a limit for each object is not in the way.
const UPDATED: usize = 12;

impl Prober {
    /// The number of races of a whole probe.
    pub(super) fn races(&self) -> usize {
        self.config.races(CREATORS).len() + self.config.races(UPDATERS).len()
    }

    pub(super) async fn racing_creators(&self) -> Finding {
        let mut losers = Losers::default();
        let races = self.config.races(CREATORS);
        for (number, &writers) in races.iter().enumerate() {
            let race = Race { role: "creators", number, writers, base: None, is_last: true };
            self.race(&self.new_key("creators"), race, &mut losers).await?;
            self.sweep().await;
        }
        Ok(one_winner_each(&races, &losers))
    }

    /// Races as many creators as the probe may have. Returns the version that the winner wrote.
    pub(crate) async fn race_creators(&self, key: &str, number: usize) -> Finding<Version> {
        let race = Race { role: "creators", number, writers: self.config.writers, base: None, is_last: true };
        self.race(key, race, &mut Losers::default()).await
    }

    /// Races updaters. Every race starts from the version that the winner of the object's previous race wrote.
    pub(super) async fn racing_updaters(&self) -> Finding {
        let mut losers = Losers::default();
        let races = self.config.races(UPDATERS);
        let mut objects = Vec::new();
        for _ in 0..races.len().min(UPDATED) {
            let key = self.new_key("updaters");
            let first = "what a probe's updaters race for";
            let base = self.put_rightly(&key, first, &Precondition::Absent).await?.version;
            objects.push((key, base));
        }
        for (number, &writers) in races.iter().enumerate() {
            let (key, base) = &mut objects[number % UPDATED];
            let is_last = number + UPDATED >= races.len();
            let race = Race { role: "updaters", number, writers, base: Some(base.clone()), is_last };
            *base = self.race(key, race, &mut losers).await?;
        }
        Ok(one_winner_each(&races, &losers))
    }

    /// Runs one race, and repeats it if all racers were rejected. Returns the version that the winner wrote.
    async fn race(&self, key: &str, race: Race, losers: &mut Losers) -> Finding<Version> {
        // The answers of all tries count together: they name the same precondition, so at most one of them may
        // win.
        let mut answers: Vec<Answer<Version>> = Vec::new();
        for _ in 0..TRIES {
            let racers = answers.len()..answers.len() + race.writers;
            let given = self.start(key, &race, racers).await;
            let asked = given.iter().filter_map(|answer| answer.as_ref().err()?.retry_after()).max();
            answers.extend(given.into_iter().map(|answer| answer.map_err(Refusal::from)));

            let told = race::told_that_it_won(&race.to_string(), &answers)?;
            if race.is_shown_by_the_next(&answers)
                && let Some(winner) = told
                && let Ok(version) = &answers[winner]
            {
                losers.count(winner, &answers);
                return Ok(version.clone());
            }
            let present = self.present(key, &race, answers.len()).await?;
            let is_conflict =
                |answer: &Answer<_>| answer.as_ref().is_err_and(|refusal| refusal.kind == StoreErrorKind::Conflict);
            if present.is_none() && answers.iter().all(is_conflict) {
                let what = format!("all of {} racing {race} are refused, and nothing has changed", answers.len());
                return Err(Stopped::Refused(what));
            }
            let racer = present.as_ref().map(|(racer, _)| *racer);
            let winner = race::winner(&race.to_string(), &as_trusted(&answers, racer), present)?;
            if let Some(refusal) = answers.iter().filter_map(|answer| answer.as_ref().err()).find(hopeless) {
                return Err(StoreError::new(refusal.kind, refusal.text.clone()).into());
            }
            if let Some((winner, version)) = winner {
                losers.count(winner, &answers);
                return Ok(version);
            }
            self.pause(asked).await;
        }
        let last = answers.into_iter().filter_map(Result::err).next_back().map(|refusal| refusal.text);
        let message = format!("in {TRIES} races nobody won; the last answer was: {}", last.unwrap_or_default());
        Err(StoreError::new(StoreErrorKind::Rejected, message).into())
    }

    /// Returns the racer that wrote the current object, and the version; `None` if the object has not changed
    /// since the race began.
    async fn present(&self, key: &str, race: &Race, racers: usize) -> Finding<Option<(usize, Version)>> {
        let Some(found) = self.get(key).await? else { return Ok(None) };
        if race.base.as_ref() == Some(&found.version) {
            return Ok(None);
        }
        let Some(racer) = (0..racers).find(|&racer| race.body(racer) == found.body) else {
            let what = format!("a read shows {}, which none of the racing {race} wrote", shown(Some(&found)));
            return Err(Breach::new(what, LINEARIZABLE_WRITE).into());
        };
        Ok(Some((racer, found.version)))
    }

    /// Lets all writers start at the same moment. One connection can carry one write at a time, so the client opens
    /// several connections.
    async fn start(&self, key: &str, race: &Race, racers: Range<usize>) -> Vec<Result<Version, StoreError>> {
        race::at_once(racers.map(|racer| {
            let (prober, key) = (self.clone(), key.to_owned());
            let (body, precondition) = (race.body(racer), race.precondition());
            async move { prober.put_once(&key, body, precondition).await }
        }))
        .await
    }
}

fn one_winner_each(races: &[usize], losers: &Losers) -> String {
    let (fewest, most) = (races.iter().min().unwrap_or(&0), races.iter().max().unwrap_or(&0));
    let writers = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
    let losers: Vec<_> = losers.0.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let losers = losers.join(", ");
    format!("one winner in each of {} races of {writers}; the losers: {losers}", races.len())
}

/// The conditions of a race.
struct Race {
    role: &'static str,
    /// The number of races of this kind before.
    number: usize,
    writers: usize,
    /// The version to replace; `None` to create.
    base: Option<Version>,
    /// No later race starts from the version that the winner of this race wrote.
    is_last: bool,
}

impl Race {
    /// Returns `true` if a later race shows whether these answers are true: if the object does not have the winner's
    /// version then, that race refuses everybody.
    fn is_shown_by_the_next(&self, answers: &[Answer<Version>]) -> bool {
        let is_clear = |answer: &Answer<_>| answer.as_ref().err().is_none_or(|no| no.kind == StoreErrorKind::Conflict);
        !self.is_last && answers.iter().all(is_clear)
    }

    fn precondition(&self) -> Precondition {
        self.base.clone().map_or(Precondition::Absent, Precondition::Matches)
    }

    fn body(&self, racer: usize) -> Bytes {
        format!("{self} of a probe, racer {racer}").into()
    }
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of race {}", self.role, self.number + 1)
    }
}

/// Converts the answers into answers that an election would trust.
///
/// An answer other than "written" or "conflict" may have come from a proxy after the store had written. A proxy
/// that repeats a request may report a winner's own write as a conflict. Neither answer makes a second winner.
fn as_trusted(answers: &[Answer<Version>], present: Option<usize>) -> Vec<Answer<Version>> {
    let mut answers = answers.to_vec();
    for (racer, answer) in answers.iter_mut().enumerate() {
        if let Err(refusal) = answer
            && (refusal.kind != StoreErrorKind::Conflict || present == Some(racer))
        {
            refusal.kind = StoreErrorKind::Ambiguous;
        }
    }
    answers
}

fn hopeless(refusal: &&Refusal) -> bool {
    matches!(refusal.kind, StoreErrorKind::Fatal | StoreErrorKind::Unreadable)
}

/// The answers of the losers, counted by kind.
#[derive(Default)]
struct Losers(BTreeMap<String, usize>);

impl Losers {
    fn count(&mut self, winner: usize, answers: &[Answer<Version>]) {
        for (racer, answer) in answers.iter().enumerate() {
            if let Err(refusal) = answer
                && racer != winner
            {
                *self.0.entry(format!("{:?}", refusal.kind)).or_default() += 1;
            }
        }
    }
}
