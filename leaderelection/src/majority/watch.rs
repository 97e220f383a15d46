//! The news that a look at a lock of which a candidate needs all parts has for people.

use super::notice::Notice;
use super::parts::Looks;
use super::view::View;
use crate::lock::record::LeaderElectionRecord;

impl View {
    /// Returns the state of the parts for people, and whether it is new.
    pub(super) fn notice_of(&mut self, looks: &Looks) -> Option<Notice> {
        let notice = self.find_notice(looks).filter(|_| self.quorum == self.names.len());
        let news = notice.clone().filter(|_| notice != self.notice);
        self.notice = notice;
        news
    }

    fn find_notice(&mut self, looks: &Looks) -> Option<Notice> {
        let leader = |half: &LeaderElectionRecord| half.holder_identity.clone();
        let held = |part: &usize| {
            let record = looks.get(part)?.as_ref().map(|found| &found.record)?;
            (!record.is_released() && !self.is_own(record)).then_some((*part, record))
        };
        let old = held(&0);
        let others = looks.keys().filter(|part| **part > 0).filter_map(held);
        let new = others.max_by_key(|(_, record)| self.precedence(Some(record)));
        if let (Some((_, old)), Some((part, new))) = (old, new) {
            if old.holder_identity == new.holder_identity {
                self.doubles = 0;
                return None;
            }
            if self.doubles >= 2 {
                return Some(Notice { old: Some(leader(old)), new: Some(leader(new)) });
            }
            // A single look of this kind may show a takeover.
            let has_changed = |part| {
                let found = looks.get(&part).and_then(Option::as_ref);
                self.shown.as_ref().is_some_and(|shown| !shown.parts.shows(part, found))
            };
            self.doubles = if has_changed(0) && has_changed(part) { self.doubles + 1 } else { 0 };
        }
        let [old, new] = [old, new].map(|half| half.map(|(_, record)| record));
        let is_old = self.precedence(old) > self.precedence(new);
        let [old, new] = [old.filter(|_| is_old), new.filter(|_| !is_old)].map(|half| half.map(leader));
        (old.is_some() || new.is_some()).then_some(Notice { old, new })
    }
}
