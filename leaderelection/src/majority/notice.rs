//! Warns of a holder that leads with some parts of a lock, if candidates need all of them.

use super::parts::{PollAnswers, found, observed};
use super::view::{Notice, View};
use crate::lock::record::LeaderElectionRecord;

impl Notice {
    /// Logs the notice. `names` are the names of the parts.
    pub(super) fn log(&self, names: &[String]) {
        let (old_lock, new_lock) = (&names[0], names[1..].join(" and "));
        match self {
            Self { old: Some(old), new: Some(new) } => tracing::error!(
                old_leader = old,
                new_leader = new,
                old_lock,
                new_lock,
                "two candidates lead, one with each lock: stop the replicas that use only one of the locks, the old or the new"
            ),
            Self { old: Some(leader), .. } => tracing::info!(
                leader,
                old_lock,
                new_lock,
                "the leader holds only the old lock, not the new one; waiting until the leader stops"
            ),
            Self { new, .. } => tracing::warn!(
                leader = new,
                old_lock,
                new_lock,
                "the leader holds only the new lock, not the old one, so no replica may use the old lock alone; waiting \
                 until the leader stops"
            ),
        }
    }
}

impl View {
    /// Returns the notice that a poll calls for, unless the previous poll called for the same.
    pub(super) fn notice_of(&mut self, polled: &PollAnswers) -> Option<Notice> {
        let notice = self.find_notice(polled).filter(|_| self.needs_all());
        let new_notice = notice.clone().filter(|_| notice != self.notice);
        self.notice = notice;
        new_notice
    }

    /// Returns both holders if they keep renewing the old and the new lock, or else the one that a poll shows as the leader.
    fn find_notice(&mut self, polled: &PollAnswers) -> Option<Notice> {
        let leader = |record: &LeaderElectionRecord| record.holder_identity.clone();
        let held = |part: &usize| {
            let record = &found(polled, *part)?.record;
            (!record.is_released() && !self.quorum.is_own(record)).then_some((*part, record))
        };
        let old = held(&0);
        let others = polled.keys().filter(|part| **part > 0).filter_map(held);
        let new = others.max_by_key(|(_, record)| self.quorum.precedence(record));
        if let (Some((_, old)), Some((part, new))) = (old, new) {
            if old.holder_identity == new.holder_identity {
                self.two_leader_polls = 0;
                return None;
            }
            if self.two_leader_polls >= 2 {
                return Some(Notice { old: Some(leader(old)), new: Some(leader(new)) });
            }
            // If both have changed in a single poll, this may only be a takeover in progress.
            let has_changed = |part| self.quorum.has_changed(&observed(polled), part);
            self.two_leader_polls = if has_changed(0) && has_changed(part) { self.two_leader_polls + 1 } else { 0 };
        }
        let [of_old, of_new] = [old, new].map(|held| held.map(|(_, record)| self.quorum.precedence(record)));
        let is_old = of_old > of_new;
        let [old, new] =
            [old.filter(|_| is_old), new.filter(|_| !is_old)].map(|held| held.map(|(_, record)| leader(record)));
        (old.is_some() || new.is_some()).then_some(Notice { old, new })
    }
}
