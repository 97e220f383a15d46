//! The check of candidates that hear: a word spares reads for a while only.

use std::time::Duration;

use leaderelection::clock::LocalInstant;
use leaderelection::election::Heard;

use super::terms::GRAIN;
use super::{Oracle, Property};
use crate::simulation::clock::TrueTime;
use crate::simulation::timeline::{Event, ProcessId, Sent};

/// A read of a candidate, and the last word that the candidate heard since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looked {
    at: LocalInstant,
    heard_at: Option<LocalInstant>,
}

impl Oracle {
    pub(in crate::simulation) fn identity_of(&self, process: ProcessId) -> String {
        self.processes[process].identity.clone()
    }

    pub(in crate::simulation) fn hears(&mut self, now: TrueTime, process: ProcessId, heard: &Heard) {
        self.stats.words += 1;
        let watched = &mut self.processes[process];
        let local = watched.clock.local_at(now);
        if let Some(looked) = &mut watched.looked {
            looked.heard_at = Some(local);
        }
        self.log(now, Some(process), Event::Hears(heard.clone()));
    }

    /// Records that a read was answered, truly or not.
    pub(in crate::simulation) fn looked(&mut self, now: TrueTime, process: ProcessId) {
        let watched = &mut self.processes[process];
        let follows = watched.open.is_none() && watched.works == 0;
        watched.looked = follows.then(|| Looked { at: watched.clock.local_at(now), heard_at: None });
    }

    /// Records that the process may have other reasons not to read.
    pub(in crate::simulation) fn is_disturbed(&mut self, process: ProcessId) {
        self.processes[process].looked = None;
    }

    /// Checks that a candidate that has heard something reads soon enough.
    pub(super) fn check_looks(&mut self, now: TrueTime, process: ProcessId, sent: Sent) {
        let watched = &mut self.processes[process];
        let Some(Looked { at, heard_at: Some(heard_at) }) = watched.looked.take() else { return };
        let Some(peers) = self.scenario.peers else { return };
        if sent != Sent::Read {
            return;
        }
        let local = watched.clock.local_at(now);
        let poll = watched.timings.retry.mul_f64(2.2);
        let slack = GRAIN * 4;
        let (since_read, since_word) = (local.saturating_since(at), local.saturating_since(heard_at.max(at)));
        let longest: Duration = poll.max(peers.infrequent_interval);
        if since_word > poll + slack || since_read > longest + slack {
            let what =
                format!("p{process} reads {since_read:?} after its last read, and {since_word:?} after the last word");
            self.violated(now, Property::LooksAllTheSame, what);
        }
    }
}
