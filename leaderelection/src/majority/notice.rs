//! What a poll shows to people if a candidate needs all parts of a lock.

use super::parts::{PollAnswers, found, seen};
use super::view::{Notice, View};
use crate::lock::record::LeaderElectionRecord;

impl Notice {
    /// Writes the notice about the parts with these names into the log.
    pub(super) fn tell(&self, names: &[String]) {
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
    /// Returns a notice about the parts for people, if it is new.
    pub(super) fn notice_of(&mut self, polled: &PollAnswers) -> Option<Notice> {
        let notice = self.find_notice(polled).filter(|_| self.needs_all());
        let news = notice.clone().filter(|_| notice != self.notice);
        self.notice = notice;
        news
    }

    fn find_notice(&mut self, polled: &PollAnswers) -> Option<Notice> {
        let leader = |half: &LeaderElectionRecord| half.holder_identity.clone();
        let held = |part: &usize| {
            let record = &found(polled, *part)?.record;
            (!record.is_released() && !self.quorum.is_own(record)).then_some((*part, record))
        };
        let old = held(&0);
        let others = polled.keys().filter(|part| **part > 0).filter_map(held);
        let new = others.max_by_key(|(_, record)| self.quorum.precedence(record));
        if let (Some((_, old)), Some((part, new))) = (old, new) {
            if old.holder_identity == new.holder_identity {
                self.doubles = 0;
                return None;
            }
            if self.doubles >= 2 {
                return Some(Notice { old: Some(leader(old)), new: Some(leader(new)) });
            }
            // A single such poll may just show a takeover in progress.
            let has_changed = |part| self.quorum.has_changed(&seen(polled), part);
            self.doubles = if has_changed(0) && has_changed(part) { self.doubles + 1 } else { 0 };
        }
        let [of_old, of_new] = [old, new].map(|half| half.map(|(_, record)| self.quorum.precedence(record)));
        let is_old = of_old > of_new;
        let [old, new] =
            [old.filter(|_| is_old), new.filter(|_| !is_old)].map(|half| half.map(|(_, half)| leader(half)));
        (old.is_some() || new.is_some()).then_some(Notice { old, new })
    }
}
