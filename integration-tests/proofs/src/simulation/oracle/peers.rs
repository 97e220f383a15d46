//! The check of candidates that read seldom: a renewal and a word spare reads for a while only.

use std::time::Duration;

use leaderelection::clock::LocalInstant;
use leaderelection::election::Heard;

use super::terms::GRAIN;
use super::{Oracle, Property};
use crate::simulation::clock::TrueTime;
use crate::simulation::scenario::Timings;
use crate::simulation::timeline::{Event, ProcessId, Sent, Shown};

/// A read of a candidate, and the last word that the candidate heard since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looked {
    at: LocalInstant,
    /// The read showed another state of the object than the read before.
    is_news: bool,
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

    /// Records that a read was answered, truly or not, and what it showed.
    pub(in crate::simulation) fn looked(&mut self, now: TrueTime, process: ProcessId, shows: Shown) {
        let watched = &mut self.processes[process];
        let follows = watched.open.is_none() && watched.works == 0;
        let (at, is_news) = (watched.clock.local_at(now), watched.known.replace(shows) != Some(shows));
        watched.looked = follows.then_some(Looked { at, is_news, heard_at: None });
        let spares = self.scenario.peers.map_or(Duration::ZERO, |peers| peers.infrequent_interval);
        let Timings { retry, follower, .. } = watched.timings;
        watched.reads_by = follows.then(|| at + spares.max(retry.mul_f64(1.2) + follower.max(retry)));
    }

    /// Begins the settle time of a process anew whose read comes a lease late, because it was frozen.
    pub(super) fn check_is_late(&mut self, now: TrueTime, process: ProcessId, sent: Sent) {
        let watched = &mut self.processes[process];
        let Some(reads_by) = watched.reads_by.take() else { return };
        if sent == Sent::Read && watched.clock.local_at(now) > reads_by + watched.timings.lease + GRAIN * 4 {
            self.settles_anew(now, process);
        }
    }

    /// Records that the process may have other reasons not to read.
    pub(in crate::simulation) fn is_disturbed(&mut self, process: ProcessId) {
        let watched = &mut self.processes[process];
        (watched.looked, watched.reads_by) = (None, None);
    }

    /// Checks that a candidate that follows reads soon enough.
    pub(super) fn check_looks(&mut self, now: TrueTime, process: ProcessId, sent: Sent) {
        let watched = &mut self.processes[process];
        if sent != Sent::Read {
            // Another version than the last one that was read may be the last one that the elector knows.
            (watched.looked, watched.known) = (None, None);
        }
        let Some(Looked { at, is_news, heard_at }) = watched.looked.take() else { return };
        let local = watched.clock.local_at(now);
        let Timings { retry, follower, .. } = watched.timings;
        let poll = retry.mul_f64(1.2) + if is_news { follower } else { retry };
        let slack = GRAIN * 4;
        let (since_read, since_word) =
            (local.saturating_since(at), local.saturating_since(heard_at.unwrap_or(at).max(at)));
        let spares = self.scenario.peers.filter(|_| heard_at.is_some()).map(|peers| peers.infrequent_interval);
        let longest: Duration = poll.max(spares.unwrap_or_default());
        if since_word > poll + slack || since_read > longest + slack {
            let what =
                format!("p{process} reads {since_read:?} after its last read, and {since_word:?} after the last word");
            self.violated(now, Property::LooksAllTheSame, what);
        }
    }
}
