//! What a follower tells of its peer, in the log and in the metrics.

use metrics::counter;

use crate::refusal::Refusal;

const HEARD: &str = "leader_election_peer_heard_total";
const REFUSED: &str = "leader_election_peer_refused_total";
const FALLBACKS: &str = "leader_election_peer_fallbacks_total";

/// The reports about one lock. A reason that repeats is logged once.
#[derive(Debug)]
pub(crate) struct Teller {
    name: String,
    /// `true` if the last attempt heard from the leader.
    hears: bool,
    told: Option<&'static str>,
}

impl Teller {
    pub(crate) fn new(name: &str) -> Self {
        let teller = Self { name: name.to_owned(), hears: false, told: None };
        // All series start at 0, because `increase()` does not see a series that first appears with a 1.
        for counted in [HEARD, FALLBACKS] {
            teller.count(counted, 0);
        }
        for reason in Refusal::NAMES {
            teller.count_refusal(reason, 0);
        }
        teller
    }

    pub(crate) fn heard(&mut self, address: &str) {
        self.count(HEARD, 1);
        if !std::mem::replace(&mut self.hears, true) {
            tracing::info!(name = self.name, address, "hears from the leader, so the store is read seldom");
        }
        self.told = None;
    }

    /// The address in the record gives nothing to hear. Returns the number of words' streams that ended so far.
    pub(crate) fn refused(&mut self, address: &str, refusal: &Refusal) {
        self.count_refusal(refusal.name(), 1);
        if std::mem::replace(&mut self.hears, false) {
            self.count(FALLBACKS, 1);
        }
        let is_told = self.told.replace(refusal.name()) == Some(refusal.name());
        let name = &self.name;
        match (is_told, refusal.is_normal()) {
            (false, false) => {
                tracing::warn!(name, address, error = %refusal, "cannot hear from the leader; the store is read instead");
            }
            (true, _) | (_, true) => {
                tracing::debug!(name, address, error = %refusal, "does not hear from the leader");
            }
        }
    }

    /// The leader has told of the end of its term.
    pub(crate) fn ended(&mut self, address: &str) {
        self.count(HEARD, 1);
        self.hears = false;
        tracing::debug!(name = self.name, address, "hears that the leader has released the lease");
    }

    fn count(&self, counted: &'static str, by: u64) {
        counter!(counted, "name" => self.name.clone()).increment(by);
    }

    fn count_refusal(&self, reason: &'static str, by: u64) {
        counter!(REFUSED, "name" => self.name.clone(), "reason" => reason).increment(by);
    }
}
