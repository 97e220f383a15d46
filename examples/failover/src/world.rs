//! The known state of candidates and lock, from the candidates' reports and from reading the lock.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use leaderelection_arena::report::Report;
use leaderelection_arena::verdict::Evidence;

use crate::cluster::{Happening, Slot};
use crate::observer::Sighting;

#[derive(Debug, Default)]
pub struct World {
    pub candidates: Vec<Candidate>,
    /// Every term that the lock has shown, by fencing token.
    pub terms: BTreeMap<u64, Term>,
    /// The claims and the appends, according to the lock and to the candidates' own reports.
    pub evidence: Evidence,
    /// The messages that candidates got, and the reads that the messages saved, if any candidate with peers has ended.
    pub messages: Option<(u64, u64)>,
    /// The latest failure of a store or a candidate, for a message when the demonstration stands still.
    pub trouble: Option<String>,
}

#[derive(Debug)]
pub struct Candidate {
    pub name: String,
    pub pid: u32,
    pub state: State,
    /// `true` if the program has stopped the candidate by SIGSTOP, which the candidate cannot report.
    pub frozen: bool,
    /// `true` if the candidate still led when it went on after a freeze; `None` before its report.
    pub thawed: Option<bool>,
    /// The log's answer to the token of the candidate's last term.
    pub stale_append: Option<StaleAppend>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Following,
    Leading { token: u64 },
    Gone { gracefully: bool },
}

#[derive(Clone, Debug)]
pub struct StaleAppend {
    pub refused: bool,
    pub answer: String,
}

/// One term, as the lock shows it.
#[derive(Clone, Debug)]
pub struct Term {
    pub holder: String,
    pub began: Instant,
    pub last_renewal: Sighting,
    pub released: bool,
}

/// The leader, according to both the lock and the candidate's own reports.
#[derive(Clone, Debug)]
pub struct Leader {
    pub slot: Slot,
    pub name: String,
    pub pid: u32,
    pub token: u64,
}

impl Candidate {
    pub fn new(name: String, pid: u32) -> Self {
        Self { name, pid, state: State::Following, frozen: false, thawed: None, stale_append: None }
    }

    pub fn is_gone(&self) -> bool {
        matches!(self.state, State::Gone { .. })
    }

    /// Returns the candidate's state in a word.
    pub fn doing(&self) -> &'static str {
        match self.state {
            _ if self.frozen => "frozen",
            State::Leading { .. } => "leads",
            State::Following => "follows",
            State::Gone { .. } => "gone",
        }
    }
}

impl Term {
    /// The moment at which the lease expires, or expired, as this observer sees it.
    pub fn expires(&self) -> Instant {
        self.last_renewal.seen_at + self.last_renewal.record.lease_duration
    }

    /// The moment before which no candidate may take the lease, whenever in the reading interval the record was
    /// written.
    pub fn earliest_expiry(&self) -> Instant {
        self.last_renewal.written_after + self.last_renewal.record.lease_duration
    }

    pub fn renewal_age(&self) -> Duration {
        self.last_renewal.seen_at.elapsed()
    }
}

impl World {
    pub fn on_happening(&mut self, happening: Happening) {
        match happening {
            Happening::Reported(slot, report) => self.on_report(slot, report),
            Happening::Exited(slot, status) => {
                let candidate = &mut self.candidates[slot];
                candidate.state = State::Gone { gracefully: status.success() };
                candidate.frozen = false;
            }
        }
    }

    fn on_report(&mut self, slot: Slot, report: Report) {
        let candidate = &mut self.candidates[slot];
        match report {
            Report::Inside { token, .. } => {
                candidate.state = State::Leading { token };
                self.evidence.claims.entry(token).or_default().insert(candidate.name.clone());
            }
            Report::Appended { token, number } => self.evidence.appended.push((token, number)),
            Report::NotAppended { token, error } => {
                self.trouble = Some(format!("{} with token {token}: {error}", candidate.name));
            }
            Report::Ended { .. } => candidate.state = State::Following,
            Report::Thawed { leading } => {
                candidate.frozen = false;
                candidate.thawed = Some(leading);
            }
            Report::Messages { words, reads_saved } => {
                let (so_far, saved) = self.messages.get_or_insert_default();
                *so_far += words;
                *saved += reads_saved;
            }
            Report::TriedStaleToken { refused, answer, .. } => {
                candidate.stale_append = Some(StaleAppend { refused, answer });
            }
        }
    }

    pub fn on_sighting(&mut self, sighting: Sighting) {
        let token = sighting.record.leader_transitions;
        if sighting.record.is_released() {
            if let Some(term) = self.terms.get_mut(&token) {
                term.released = true;
            }
            return;
        }
        let holder = sighting.record.holder_identity.clone();
        self.evidence.claims.entry(token).or_default().insert(holder.clone());
        match self.terms.get_mut(&token) {
            Some(term) => term.last_renewal = sighting,
            None => {
                let term = Term { holder, began: sighting.seen_at, last_renewal: sighting, released: false };
                self.terms.insert(token, term);
            }
        }
    }

    /// The leader, if the lock and the candidate agree and the candidate renews its lease in time.
    pub fn leader(&self) -> Option<Leader> {
        let (&token, term) = self.terms.last_key_value()?;
        let slot = self.candidates.iter().position(|candidate| candidate.name == term.holder)?;
        let candidate = &self.candidates[slot];
        let leads = candidate.state == State::Leading { token } && !candidate.frozen;
        let holds = !term.released && term.renewal_age() < term.last_renewal.record.lease_duration / 2;
        (leads && holds).then(|| Leader { slot, name: candidate.name.clone(), pid: candidate.pid, token })
    }

    /// The number of appends that were reported as done in the term with this token.
    pub fn entries(&self, token: u64) -> usize {
        self.evidence.appended.iter().filter(|&&(of, _)| of == token).count()
    }
}
