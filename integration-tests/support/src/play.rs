//! The state machine of an election, one step after the other.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::clock::LocalInstant;
use leaderelection::election::{
    Answer, Effect, Election, ElectionConfig, EntropySource, Failure, Input, Jitter, Purpose, Request, WriteMeta,
};
use leaderelection::implement::Version;
use leaderelection::lock::JobId;
use leaderelection::{LeaderElectionRecord, StoreErrorKind};

/// Counts the stamps, and always draws the same fraction.
#[derive(Debug)]
pub struct Count {
    /// The number of stamps so far, which is the write id of the last one.
    pub ids: u64,
    /// The fraction.
    pub jitter: u32,
}

impl EntropySource for Count {
    fn jitter(&mut self) -> Jitter {
        Jitter::new(self.jitter)
    }

    fn stamp(&mut self) -> WriteMeta {
        self.ids += 1;
        WriteMeta { write_id: self.ids.to_string(), time: chrono::DateTime::UNIX_EPOCH }
    }
}

/// An election, its clock, and the last request that it sent.
#[derive(Debug)]
pub struct Play {
    /// The election.
    pub election: Election,
    /// The time on its clock.
    pub now: LocalInstant,
    /// Its random choices.
    pub draw: Count,
    /// The effects of the last step.
    pub effects: Vec<Effect>,
}

impl Play {
    /// A candidate that has just begun.
    #[must_use]
    pub fn new(rules: ElectionConfig, jitter: u32) -> Self {
        Self::of(rules, jitter, None)
    }

    /// A candidate for a job.
    #[must_use]
    pub fn of(rules: ElectionConfig, jitter: u32, job: Option<JobId>) -> Self {
        let mut play = Self {
            election: Election::new(rules),
            now: LocalInstant::default(),
            draw: Count { ids: 0, jitter },
            effects: Vec::new(),
        };
        play.handle(Input::Begin { stand_back: Duration::ZERO, ends_with_work: job.is_some(), job });
        play
    }

    /// A leader from the start of its clock on.
    ///
    /// # Panics
    ///
    /// If the candidate does not come to lead.
    #[must_use]
    pub fn leader(rules: ElectionConfig) -> Self {
        let mut play = Self::new(rules, 0);
        assert_eq!(play.request(), Some(Request::Read));
        play.handle(Input::Answer(Answer::Read(Ok(None))));
        assert_eq!(play.purpose(), Some(Purpose::Acquire));
        play.handle(Input::Answer(Answer::Written(Ok(Version::new("1")))));
        assert!(play.election.leading(play.now).is_some());
        play
    }

    /// Handles an input, and keeps its effects.
    pub fn handle(&mut self, input: Input) {
        self.election.handle(self.now, input, &mut self.draw);
        self.effects = std::iter::from_fn(|| self.election.next()).collect();
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.handle(Input::Tick);
    }

    /// Lets the request that the last step sent fail.
    pub fn fail(&mut self, kind: StoreErrorKind, retry_after: Option<Duration>) {
        let failure = Failure { kind, retry_after };
        let is_read = self.effects.contains(&Effect::Send(Request::Read));
        self.handle(Input::Answer(if is_read { Answer::Read(Err(failure)) } else { Answer::Written(Err(failure)) }));
    }

    /// The request that the last step sent.
    #[must_use]
    pub fn request(&self) -> Option<Request> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Send(request) => Some(request.clone()),
            _ => None,
        })
    }

    /// The record in the write that the last step sent.
    #[must_use]
    pub fn written(&self) -> Option<LeaderElectionRecord> {
        match self.request() {
            Some(Request::Write(write)) => Some(Arc::unwrap_or_clone(write.record)),
            _ => None,
        }
    }

    /// The purpose of the write that the last step sent.
    #[must_use]
    pub fn purpose(&self) -> Option<Purpose> {
        match self.request() {
            Some(Request::Write(write)) => Some(write.purpose),
            _ => None,
        }
    }

    /// Returns the position, among the effects of the last step, of the first effect that `is` accepts.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn position(&self, is: impl Fn(&Effect) -> bool) -> usize {
        self.effects.iter().position(is).unwrap_or_else(|| panic!("not among {:?}", self.effects))
    }
}
