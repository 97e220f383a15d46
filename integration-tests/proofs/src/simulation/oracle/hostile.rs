//! The checks beside a hostile writer of some locks (rule M12).
//!
//! What such a lock shows decides nothing here. So the checks of the writes, each of which asks what the write replaces, are left
//! out. What no writer of so few locks may break stays: exclusion, the order of the tokens, the window of each term, and jobs
//! that are done once.

use std::time::Duration;

use leaderelection::LeaderElectionRecord;

use super::knowledge::Oracle;
use super::process::Committed;
use super::property::Property;
use crate::simulation::clock::TrueTime;
use crate::simulation::hostile::Forged;
use crate::simulation::names::{ProcessId, RequestId, Shown};
use crate::simulation::timings::Timings;

impl Oracle {
    /// Records a write of the hostile writer.
    pub(crate) fn forged(&mut self, lock: usize, forged: &Forged) {
        self.stats.forgeries += 1;
        let now = (self.now(), self.now());
        match forged {
            Forged::Nothing => self.halves[lock].forget(),
            Forged::NoRecord => {
                self.halves[lock].remember(None, now, &LeaderElectionRecord::new("", Duration::from_secs(1)));
            }
            Forged::Record(record) => {
                self.jobs.forged.extend(record.completed_jobs());
                self.halves[lock].remember(None, now, record);
            }
        }
    }

    /// Records a write that takes effect in one of the locks. A hostile writer can show it in its own. So the write counts when
    /// it is committed in as many of the others as its writer needs beside those.
    pub(super) fn wrote_beside_a_hostile_writer(
        &mut self,
        (by, this): (ProcessId, usize),
        (request, sent): (RequestId, TrueTime),
        record: &LeaderElectionRecord,
    ) {
        self.remember_mark(by, record);
        self.mark_is_written(by, record);
        self.halves[this].remember(Some(by), (sent, self.timeline.now), record);
        let uses = self.processes[by].locks;
        let may_show = |part: &&usize| self.scenario.is_hostile(**part) || self.halves[**part].shows(record);
        let shown = uses.parts.iter().filter(may_show).count();
        let reached = self.rollout.reached.entry(record.write_id.clone()).or_default();
        reached.insert(this);
        reached.extend(uses.parts.iter().filter(|part| self.scenario.is_hostile(**part)));
        let began_late = !self.scenario.clocks_bounded && shown < uses.needs && reached.len() >= uses.needs;
        let is_new = (began_late || shown >= uses.needs) && self.rollout.committed.insert(request);
        if !is_new {
            return;
        }
        let watched = &mut self.processes[by];
        let Timings { lease, deadline, .. } =
            self.scenario.timings_of_lease(record.lease_duration).unwrap_or(watched.is.timings);
        let (token, sent_at) = (record.leader_transitions, watched.is.clock.local_at(sent));
        let committed = Committed { token, sent: sent_at, lease, deadline };
        if began_late {
            // It was never in all of them at a time, which its writer, whose clock is slow, cannot know.
            self.object.begins_late(by, token);
            watched.seen.committed =
                watched.seen.committed.filter(|last| last.token == token && last.sent > sent_at).or(Some(committed));
            return;
        }
        watched.seen.committed = Some(committed);
        self.stats.writes += 1;
        self.stats.releases += u64::from(record.is_released());
        if record.is_released() {
            self.mark_is_committed(by, record);
        } else if !self.object.has_begun(by, record.leader_transitions) {
            self.check_job_is_new(by, request);
        }
        self.object.remember(Some(by), (sent, self.timeline.now), record);
    }

    /// Checks that each term has a larger token than all before.
    pub(super) fn check_token_of_term(&mut self, process: ProcessId, token: u64) {
        if self.scenario.hostile.is_none() {
            return;
        }
        let is_new = self.last_token.is_none_or(|last| token > last);
        self.timeline.demand(is_new || !self.scenario.clocks_bounded, Property::Tokens, || {
            format!("p{process} leads with token {token}, and a term before had {:?}", self.last_token)
        });
        self.last_token = self.last_token.max(Some(token));
    }

    /// Returns `true` if a read has shown a record that was forged.
    pub(super) fn has_forgery(&self, read: &Shown) -> bool {
        let is_forged = |(lock, write): (usize, &u64)| {
            self.scenario.is_hostile(lock) && *write > 0 && self.halves[lock].writer(*write).is_none()
        };
        read.iter().enumerate().any(is_forged)
    }
}
