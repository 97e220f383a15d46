//! Races of many writers with the same precondition, of which exactly one must win.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use futures_util::future::join_all;
use leaderelection::{Precondition, StoreError, StoreErrorKind, Version};

use super::calls::Prober;
use super::check::Finding;
use super::sequential::shown;
use crate::contract::{Breach, LINEARIZABLE_WRITE};
use crate::patience::TRIES;
use crate::race::{self, Answer, Refusal};

impl Prober<'_> {
    pub(super) async fn racing_creators(&self) -> Finding {
        let mut losers = Losers::default();
        for round in 0..self.config.rounds {
            let key = self.new_key("creators");
            self.race(&key, Race { role: "creators", round, base: None }, &mut losers).await?;
            self.sweep().await;
        }
        Ok(self.one_winner_each(&losers))
    }

    /// Races updaters. Every round starts from the version that the winner of the previous round wrote.
    pub(super) async fn racing_updaters(&self) -> Finding {
        let mut losers = Losers::default();
        let key = self.new_key("updaters");
        let mut base = self.put(&key, "what a probe's updaters race for", &Precondition::Absent).await?.version;
        for round in 0..self.config.rounds {
            base = self.race(&key, Race { role: "updaters", round, base: Some(base) }, &mut losers).await?;
        }
        Ok(self.one_winner_each(&losers))
    }

    fn one_winner_each(&self, losers: &Losers) -> String {
        let (rounds, writers) = (self.config.rounds, self.config.writers);
        format!("one winner in each of {rounds} races of {writers}; the losers: {losers}")
    }

    /// Runs one race, and repeats it if all racers were rejected. Returns the version that the winner wrote.
    async fn race(&self, key: &str, race: Race, losers: &mut Losers) -> Finding<Version> {
        // The answers of all tries count together: they name the same precondition, so at most one of them may
        // win.
        let mut answers: Vec<Answer<Version>> = Vec::new();
        for _ in 0..TRIES {
            let racers = answers.len()..answers.len() + self.config.writers;
            let given = self.start(key, &race, racers).await;
            let asked = given.iter().filter_map(|answer| answer.as_ref().err()?.retry_after()).max();
            answers.extend(given.into_iter().map(|answer| answer.map_err(Refusal::from)));

            race::told_that_it_won(&race.to_string(), &answers)?;
            let present = self.present(key, &race, answers.len()).await?;
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

    /// Sends all writes before it looks at any answer. One connection can carry one write at a time, so the
    /// client opens several connections.
    async fn start(&self, key: &str, race: &Race, racers: Range<usize>) -> Vec<Result<Version, StoreError>> {
        join_all(racers.map(|racer| self.put_once(key, race.body(racer), race.precondition()))).await
    }
}

/// The conditions of a race.
struct Race {
    role: &'static str,
    round: usize,
    /// The version to replace; `None` to create.
    base: Option<Version>,
}

impl Race {
    fn precondition(&self) -> Precondition {
        self.base.clone().map_or(Precondition::Absent, Precondition::Matches)
    }

    fn body(&self, racer: usize) -> Bytes {
        format!("{self} of a probe, racer {racer}").into()
    }
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of round {}", self.role, self.round + 1)
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

impl fmt::Display for Losers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (kind, count)) in self.0.iter().enumerate() {
            write!(f, "{}{count} {kind}", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}
