//! The reports of a follower about its peer: to the log, to the metrics, and to the status.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::counter;

use crate::refusal::Refusal;

const MESSAGES: &str = "leader_election_peer_heard_total";
const REFUSED: &str = "leader_election_peer_refused_total";
const FALLBACKS: &str = "leader_election_peer_fallbacks_total";
const SAVED: &str = "leader_election_peer_reads_saved_total";

/// A snapshot of the messages that an elector has got from its leaders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerStatus {
    /// `true` if the elector gets messages from the leader that it follows, or a session from all others.
    pub connected: bool,
    /// The number of messages.
    pub messages: u64,
    /// The number of failed attempts to get messages.
    pub refused: u64,
    /// The number of times that the messages stopped and the elector went back to the store.
    pub fallbacks: u64,
    /// The number of reads of the store that the messages have saved.
    pub reads_saved: u64,
    /// The reason for which the last attempt failed; `None` if nothing has failed since the last message.
    pub last_refusal: Option<Refusal>,
}

impl PeerStatus {
    /// The messages of two followers.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            connected: self.connected && other.connected,
            messages: self.messages + other.messages,
            refused: self.refused + other.refused,
            fallbacks: self.fallbacks + other.fallbacks,
            reads_saved: self.reads_saved + other.reads_saved,
            last_refusal: self.last_refusal.or(other.last_refusal),
        }
    }
}

/// The status, for the follower and for those who display it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedStatus(Arc<Mutex<PeerStatus>>);

impl SharedStatus {
    pub(crate) fn get(&self) -> PeerStatus {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, PeerStatus> {
        // No code that could panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reports about one lock. A reason that repeats is logged once.
#[derive(Debug)]
pub(crate) struct PeerReport {
    name: String,
    status: SharedStatus,
}

impl PeerReport {
    /// Reports about one lock from now on. Messages have saved so many reads before.
    pub(crate) fn new(name: &str, status: SharedStatus, reads_saved: u64) -> Self {
        status.lock().reads_saved = reads_saved;
        let report = Self { name: name.to_owned(), status };
        // All series start at 0, because `increase()` does not see a series that first appears with a 1.
        for counted in [MESSAGES, FALLBACKS, SAVED] {
            report.count(counted, 0);
        }
        for reason in Refusal::NAMES {
            report.count_refusal(reason, 0);
        }
        report
    }

    /// The leader has reported a renewal. Messages have saved so many reads in all.
    pub(crate) fn message(&self, address: &str, reads_saved: u64) {
        self.count(MESSAGES, 1);
        let mut status = self.status.lock();
        status.messages += 1;
        self.count(SAVED, reads_saved - std::mem::replace(&mut status.reads_saved, reads_saved));
        status.last_refusal = None;
        let was_connected = std::mem::replace(&mut status.connected, true);
        drop(status);
        if !was_connected {
            tracing::info!(name = self.name, address, "connected to the leader; reading the store less often");
        }
    }

    /// The leader has reported the end of its term.
    pub(crate) fn ended(&self, address: &str) {
        self.count(MESSAGES, 1);
        let mut status = self.status.lock();
        status.messages += 1;
        status.connected = false;
        drop(status);
        tracing::debug!(name = self.name, address, "the leader reports that it has released the lease");
    }

    /// The elector follows another term, or none.
    pub(crate) fn changed(&self) {
        self.status.lock().connected = false;
    }

    /// The address in the record gives no messages.
    pub(crate) fn refused(&self, address: &str, refusal: &Refusal) {
        self.count_refusal(refusal.name(), 1);
        let mut status = self.status.lock();
        status.refused += 1;
        let was_connected = std::mem::replace(&mut status.connected, false);
        status.fallbacks += u64::from(was_connected);
        let before = status.last_refusal.replace(refusal.clone());
        drop(status);
        self.count(FALLBACKS, u64::from(was_connected));
        let is_told = before.is_some_and(|before| before.name() == refusal.name());
        let name = &self.name;
        if is_told || refusal.is_normal() {
            tracing::debug!(name, address, error = %refusal, "no messages from the leader");
        } else {
            tracing::warn!(name, address, error = %refusal, "no messages from the leader; reading the store instead");
        }
    }

    fn count(&self, counted: &'static str, by: u64) {
        counter!(counted, "name" => self.name.clone()).increment(by);
    }

    fn count_refusal(&self, reason: &'static str, by: u64) {
        counter!(REFUSED, "name" => self.name.clone(), "reason" => reason).increment(by);
    }
}

#[cfg(test)]
mod tests {
    use leaderelection_test_support::logs::warnings_of;
    use metrics::with_local_recorder;
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};

    use super::*;

    fn status(connected: bool, number: u64, last_refusal: Option<Refusal>) -> PeerStatus {
        let [refused, fallbacks, reads_saved] = [10, 100, 1000].map(|times| number * times);
        PeerStatus { connected, messages: number, refused, fallbacks, reads_saved, last_refusal }
    }

    #[test]
    fn the_messages_of_two_followers_are_added_up() {
        let of_both = |connected| status(true, 2, None).and(status(connected, 3, Some(Refusal::Busy)));
        assert_eq!(of_both(true), status(true, 5, Some(Refusal::Busy)));
        assert_eq!(of_both(false), status(false, 5, Some(Refusal::Busy)));
    }

    #[test]
    fn reads_that_messages_have_saved_are_counted_once() {
        let recorder = DebuggingRecorder::new();
        with_local_recorder(&recorder, || {
            let report = PeerReport::new("jobs", SharedStatus::default(), 2);
            report.message("a", 5);
            report.message("a", 9);
            report.ended("a");
            assert_eq!(report.status.get(), PeerStatus { messages: 3, reads_saved: 9, ..PeerStatus::default() });
        });
        let counted = recorder.snapshotter().snapshot().into_vec();
        let of = |name| counted.iter().filter(move |(key, ..)| key.key().name() == name).map(|(.., count)| count);
        assert!(of(MESSAGES).eq([&DebugValue::Counter(3)]) && of(SAVED).eq([&DebugValue::Counter(7)]));
    }

    #[test]
    fn a_reason_that_repeats_is_a_warning_once_and_the_end_of_a_term_is_none() {
        let report = PeerReport::new("jobs", SharedStatus::default(), 0);
        let warnings = |refusal| warnings_of(|| report.refused("a", &refusal)).0.len();
        let refusals = [Refusal::Busy, Refusal::Busy, Refusal::NotLeading, Refusal::Closed, Refusal::Redirect];
        assert_eq!(refusals.map(warnings), [1, 0, 0, 0, 1]);
        report.message("a", 0);
        report.refused("a", &Refusal::Redirect);
        report.refused("a", &Refusal::Redirect);
        assert_eq!((report.status.get().refused, report.status.get().fallbacks), (7, 1));
    }
}
