//! The check of candidates that read seldom: a renewal and a message put reads off for a while only.

use std::time::Duration;

use leaderelection::election::PeerMessage;

use super::knowledge::Oracle;
use super::process::{CandidateRead, GRAIN, Watched};
use super::property::Property;
use crate::simulation::names::{ProcessId, Sent, Shown};
use crate::simulation::timings::Timings;

impl Oracle {
    pub(crate) fn identity_of(&self, process: ProcessId) -> String {
        self.processes[process].identity.clone()
    }

    pub(crate) fn on_message(&mut self, process: ProcessId, message: &PeerMessage) {
        self.stats.messages += 1;
        let Watched { is, seen } = &mut self.processes[process];
        if let Some(read) = &mut seen.last_read {
            read.reported_at = Some(is.clock.local_at(self.timeline.now));
        }
        self.log(Some(process), || format!("gets {message:?}"));
    }

    /// Records that a read was answered, truly or not, and what it showed.
    pub(crate) fn read_answered(&mut self, process: ProcessId, shows: Shown) {
        self.note_release_in_read(process);
        let watched = &mut self.processes[process];
        let at = watched.clock.local_at(self.timeline.now);
        // A message to a frozen process may arrive after its first reads.
        let was_frozen = watched.was_frozen_since(at - watched.timings.lease);
        let Watched { is, seen } = watched;
        let follows = seen.open.is_none() && seen.works == 0;
        // What a lock without an object shows here is what one shows that has not answered, and the difference is news.
        let may_be_news = is.locks.parts.iter().any(|part| shows[*part] == 0);
        let is_news = seen.known.replace(shows) != Some(shows) || may_be_news;
        // The store may want no request for longer: a leader has asked once more, and has lost its lease.
        let free_at = seen.may_wait_until.map_or(at, |until| until.max(at));
        // A lock that a hostile writer has deleted looks like one that has not answered.
        let is_judged = follows && !was_frozen && free_at == at && self.scenario.hostile.is_none();
        seen.last_read = is_judged.then_some(CandidateRead { at, is_news, reported_at: None });
        let spares = self.scenario.peers.map_or(Duration::ZERO, |peers| peers.background_interval);
        let Timings { retry, follower, .. } = is.timings;
        seen.reads_by = follows.then(|| free_at + spares.max(retry.mul_f64(1.2) + follower.max(retry)));
    }

    /// Restarts the fail-back delay of a process whose read comes a lease late, because it was frozen.
    pub(super) fn check_is_late(&mut self, process: ProcessId, sent: Sent) {
        let Watched { is, seen } = &mut self.processes[process];
        let Some(reads_by) = seen.reads_by.take() else { return };
        if sent == Sent::Read && is.clock.local_at(self.timeline.now) > reads_by + is.timings.lease + GRAIN * 4 {
            self.restart_failback_delay(process);
        }
    }

    /// Records that the process may have other reasons not to read.
    pub(crate) fn is_disturbed(&mut self, process: ProcessId) {
        let seen = &mut self.processes[process].seen;
        (seen.last_read, seen.reads_by) = (None, None);
    }

    /// Checks that a candidate that follows reads soon enough.
    pub(super) fn check_read_interval(&mut self, process: ProcessId, sent: Sent) {
        let Watched { is, seen } = &mut self.processes[process];
        if sent != Sent::Read {
            // Another version than the last one that was read may be the last one that the elector knows.
            (seen.last_read, seen.known) = (None, None);
        }
        let Some(CandidateRead { at, is_news, reported_at }) = seen.last_read.take() else { return };
        let local = is.clock.local_at(self.timeline.now);
        let Timings { retry, follower, .. } = is.timings;
        let poll = retry.mul_f64(1.2) + if is_news { follower } else { retry };
        let slack = GRAIN * 4;
        let (since_read, since_message) =
            (local.saturating_since(at), local.saturating_since(reported_at.unwrap_or(at).max(at)));
        let spares = self.scenario.peers.filter(|_| reported_at.is_some()).map(|peers| peers.background_interval);
        let longest: Duration = poll.max(spares.unwrap_or_default());
        let is_in_time = since_message <= poll + slack && since_read <= longest + slack;
        self.timeline.demand(is_in_time, Property::ReadsInTime, || {
            format!("p{process} reads {since_read:?} after its last read, and {since_message:?} after the last message")
        });
    }
}
