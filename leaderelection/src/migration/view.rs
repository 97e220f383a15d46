//! The decisions of a [`Migration`](crate::Migration), without I/O: the record that two records show together, and the
//! order of a write.
//!
//! The numbers in comments are those of the rules in [the protocol](crate::protocol).

use std::collections::VecDeque;

use crate::election::is_annotation;
use crate::lock::VersionedRecord;
use crate::lock::record::{LeaderElectionRecord, RELEASED_LEASE, UnknownFields};
use crate::store::{StoreErrorKind, Version};

/// The number of own writes that a view remembers. An own write that is forgotten counts as another candidate's, so its
/// lease is waited for.
const REMEMBERED_WRITES: usize = 64;

/// One of the two locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Half {
    /// The lock that the service moves away from.
    Old,
    /// The lock that the service moves to.
    New,
}

/// The order in which a record is written: the old lock is taken first and given back last (M2 and M6).
#[must_use]
pub fn order(record: &LeaderElectionRecord) -> [Half; 2] {
    if record.is_released() { [Half::New, Half::Old] } else { [Half::Old, Half::New] }
}

/// The versions of both locks; `None` for a lock without an object. Together they are one version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Versions {
    old: Option<Version>,
    new: Option<Version>,
}

impl Versions {
    /// Reads what [`version`](Self::version) has written.
    #[must_use]
    pub fn read(version: &Version) -> Option<Self> {
        let (old, new): (Option<String>, Option<String>) = serde_json::from_str(version.as_str()).ok()?;
        Some(Self { old: old.map(Version::new), new: new.map(Version::new) })
    }

    /// Returns both versions as one.
    #[must_use]
    pub fn version(&self) -> Version {
        let [old, new] = [&self.old, &self.new].map(|version| version.as_ref().map(Version::as_str));
        Version::new(serde_json::json!([old, new]).to_string())
    }

    /// The version of one lock.
    #[must_use]
    pub fn get(&self, half: Half) -> Option<&Version> {
        match half {
            Half::Old => self.old.as_ref(),
            Half::New => self.new.as_ref(),
        }
    }

    /// The place of the version of one lock.
    pub fn of(&mut self, half: Half) -> &mut Option<Version> {
        match half {
            Half::Old => &mut self.old,
            Half::New => &mut self.new,
        }
    }
}

/// Something that people should know about the two locks. No decision depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// Somebody holds the old lock and not the new one.
    OldAlone {
        /// The holder.
        leader: String,
    },
    /// Somebody holds the new lock and not the old one.
    NewAlone {
        /// The holder.
        leader: String,
    },
    /// Both locks are renewed, by different holders.
    TwoLeaders {
        /// The holder of the old lock.
        old: String,
        /// The holder of the new lock.
        new: String,
    },
}

/// The state of both locks as a candidate last showed it to its election, and the candidate's own writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// The identity of the candidate.
    identity: String,
    /// The record that was shown last, and the versions with which it was shown.
    shown: Option<(LeaderElectionRecord, Versions)>,
    /// The own writes whose halves may be in the locks, or may land yet, oldest first.
    own: VecDeque<Own>,
    /// The number of looks in a row that showed both locks renewed by different holders.
    doubles: u8,
    notice: Option<Notice>,
}

/// An own write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Own {
    write_id: String,
    /// `true` while the election waits for the outcome of the write. A version that the election did not know makes it
    /// forget its writes.
    is_awaited: bool,
}

impl View {
    /// Creates the view of the candidate `identity`, before its first look.
    #[must_use]
    pub fn new(identity: impl Into<String>) -> Self {
        Self { identity: identity.into(), shown: None, own: VecDeque::new(), doubles: 0, notice: None }
    }

    /// Remembers a write that is about to be sent. A request to a leader is not remembered, because it keeps the write id of
    /// the leader's record.
    pub fn writes(&mut self, record: &LeaderElectionRecord) {
        if !record.is_released() && record.holder_identity != self.identity {
            return;
        }
        self.remember(record);
    }

    fn remember(&mut self, record: &LeaderElectionRecord) {
        self.own.extend(record.write_id.clone().map(|write_id| Own { write_id, is_awaited: true }));
        if self.own.len() > REMEMBERED_WRITES {
            self.own.pop_front();
        }
    }

    /// Takes a write whose halves have both landed. No earlier write can land any more, because each names a version that
    /// has been replaced.
    pub fn wrote(&mut self, record: &LeaderElectionRecord, versions: Versions) -> Version {
        let version = versions.version();
        self.own.retain(|own| Some(&own.write_id) == record.write_id.as_ref());
        self.shown = Some((record.clone(), versions));
        version
    }

    /// Returns the record that gives back the first half of a write, after the second half has failed with this kind of
    /// error (M7); `None` if the half stays.
    pub fn gives_back(&mut self, record: &LeaderElectionRecord, kind: StoreErrorKind) -> Option<LeaderElectionRecord> {
        // The candidate tries again much later, or follows whoever has taken the second lock. Nobody else must wait for its
        // half.
        let is_lost = matches!(kind, StoreErrorKind::Conflict | StoreErrorKind::Fatal);
        // A renewal belongs to a term that goes on, and half of a request belongs to the leader that is asked. Only the first
        // write of a term raises the token.
        let shown = self.shown.as_ref().map(|(shown, _)| shown.leader_transitions);
        if !is_lost || shown >= Some(record.leader_transitions) {
            return None;
        }
        let returned = LeaderElectionRecord {
            holder_identity: String::new(),
            lease_duration: RELEASED_LEASE,
            write_id: record.write_id.as_ref().map(|id| format!("{id}-returned")),
            peer: None,
            rank: None,
            ..record.clone()
        };
        // The store may have carried out the second half, and may give the first one back at any later moment. So the write
        // counts for nothing from now on.
        self.own.iter_mut().for_each(|own| own.is_awaited = false);
        self.remember(&returned);
        Some(returned)
    }

    /// Returns the record that the records of both locks show together, and what is new for people to know.
    pub fn show(
        &mut self,
        old: Option<VersionedRecord>,
        new: Option<VersionedRecord>,
    ) -> (Option<VersionedRecord>, Option<Notice>) {
        let version = |found: &Option<VersionedRecord>| found.as_ref().map(|found| found.version.clone());
        let versions = Versions { old: version(&old), new: version(&new) };
        // The version of both has existed since the later of the two writes.
        let age = [&old, &new].into_iter().flatten().map(|found| found.age).min().flatten();
        let [old, new] = [old, new].map(|found| found.map(|found| found.record));
        let notice = self.notice_of(old.as_ref(), new.as_ref(), &versions);
        let news = notice.clone().filter(|_| notice != self.notice);
        self.notice = notice;
        if let Some((record, shown)) = &self.shown
            && *shown == versions
        {
            let found = VersionedRecord::new(record.clone(), versions.version());
            return (Some(found.with_age(age)), news);
        }
        let record = self.record([old.as_ref(), new.as_ref()], &versions).map(|mut record| {
            // M9: a write over both halves loses no mark of a job and no unknown field of either, whoever wrote them.
            record.unknown = UnknownFields::default();
            old.iter().chain(&new).for_each(|half| record.keep_unknown_of(half));
            // A request that has reached one lock is obeyed, and must not go uncounted.
            record.take_backs = old.iter().chain(&new).map(|half| half.take_backs).max().unwrap_or_default();
            record
        });
        self.own.iter_mut().for_each(|own| own.is_awaited = false);
        let Some(record) = record else {
            self.shown = None;
            return (None, news);
        };
        let found = VersionedRecord::new(record.clone(), versions.version()).with_age(age);
        self.shown = Some((record, versions));
        (Some(found), news)
    }

    /// The record of two halves that were not shown before.
    fn record(
        &mut self,
        [old, new]: [Option<&LeaderElectionRecord>; 2],
        versions: &Versions,
    ) -> Option<LeaderElectionRecord> {
        let [old_own, new_own] = [old, new].map(|half| half.and_then(|half| self.own_write(half)).cloned());
        // M5: the token of the next term is above those of both.
        let leader_transitions = old.into_iter().chain(new).map(|half| half.leader_transitions).max()?;
        if let (Some(old), Some(new)) = (old, new)
            && old.write_id.is_some()
            && old.write_id == new.write_id
            && new_own.as_ref().is_none_or(|own| own.is_awaited)
        {
            // M3: one write that has landed on both.
            if let Some(landed) = new_own {
                self.own.retain(|own| *own == landed);
            }
            let preferred_holder = new.preferred_holder.clone().or_else(|| old.preferred_holder.clone());
            return Some(LeaderElectionRecord { preferred_holder, leader_transitions, ..new.clone() });
        }
        if let Some((record, shown)) = &self.shown {
            let [old_stays, new_stays] = [(old, &shown.old, &versions.old), (new, &shown.new, &versions.new)]
                .map(|(half, before, now)| before == now || half.is_some_and(|half| is_annotation(half, record)));
            let asked = || old.into_iter().chain(new).find_map(|half| half.preferred_holder.clone());
            let preferred_holder = record.preferred_holder.clone().or_else(asked);
            if (old_stays || old_own.is_some()) && (new_stays || new_own.is_some()) {
                // M7: nothing has changed but halves of own writes, and the name of the next leader.
                return Some(LeaderElectionRecord { preferred_holder, ..record.clone() });
            }
            if old_stays && self.leaves(record, old, new) || new_stays && self.leaves(record, new, old) {
                // M6: the last lease runs on. A request for it would be a write into both locks.
                return Some(LeaderElectionRecord { preferred_holder, rank: None, ..record.clone() });
            }
        }
        let others = [old.filter(|_| old_own.is_none()), new.filter(|_| new_own.is_none())];
        Some(LeaderElectionRecord { leader_transitions, ..self.of_others(others, versions) })
    }

    /// Returns `true` if the holder of the record that was shown holds one lock still and has released the other. It leads no
    /// more, and its last lease runs on.
    fn leaves(
        &self,
        record: &LeaderElectionRecord,
        held: Option<&LeaderElectionRecord>,
        released: Option<&LeaderElectionRecord>,
    ) -> bool {
        record.holder_identity != self.identity
            && held.is_some_and(|held| !held.is_released() && held.holder_identity == record.holder_identity)
            && released.is_some_and(|half| half.is_released() && half.leader_transitions == record.leader_transitions)
    }

    /// The record of halves that are not one write: whoever holds one of the locks bars both (M4).
    fn of_others(&self, [old, new]: [Option<&LeaderElectionRecord>; 2], versions: &Versions) -> LeaderElectionRecord {
        let held = old.into_iter().chain(new).filter(|half| !half.is_released());
        let lease_duration = held.map(|half| half.lease_duration).max().unwrap_or(RELEASED_LEASE);
        let front = if self.precedence(old) > self.precedence(new) { old } else { new };
        // Neither half is the whole, so no election may take the whole for its own write, or for a write that it knows. An old
        // write of this candidate is known by the beginning of its id.
        let write_id = front.and_then(|front| front.write_id.as_deref()).unwrap_or_default();
        LeaderElectionRecord {
            lease_duration,
            write_id: Some(format!("{write_id} {}", versions.version())),
            // A request for the lease would be a write into both, and the holder of one would not know it for its own record.
            rank: None,
            ..front.cloned().unwrap_or_else(|| LeaderElectionRecord::new("", RELEASED_LEASE))
        }
    }

    /// The order of two halves. The larger one says who leads. A lease of this candidate's earlier life must not hide
    /// the lease of another. The later term has the higher token.
    fn precedence(&self, half: Option<&LeaderElectionRecord>) -> Option<(bool, bool, u64)> {
        let half = half?;
        let is_held = !half.is_released();
        Some((is_held && half.holder_identity != self.identity, is_held, half.leader_transitions))
    }

    fn own_write(&self, half: &LeaderElectionRecord) -> Option<&Own> {
        self.own.iter().find(|own| Some(&own.write_id) == half.write_id.as_ref())
    }

    fn notice_of(
        &mut self,
        old: Option<&LeaderElectionRecord>,
        new: Option<&LeaderElectionRecord>,
        versions: &Versions,
    ) -> Option<Notice> {
        let [old, new] =
            [old, new].map(|half| half.filter(|half| !half.is_released() && self.own_write(half).is_none()));
        let leader = |half: &LeaderElectionRecord| half.holder_identity.clone();
        if let (Some(old), Some(new)) = (old, new) {
            if old.holder_identity == new.holder_identity {
                self.doubles = 0;
                return None;
            }
            if self.doubles >= 2 {
                return Some(Notice::TwoLeaders { old: leader(old), new: leader(new) });
            }
            // A single look of this kind may show a takeover.
            let before = self.shown.as_ref().map(|(_, versions)| versions);
            let both_renew = before.is_some_and(|before| before.old != versions.old && before.new != versions.new);
            self.doubles = if both_renew { self.doubles + 1 } else { 0 };
        }
        match (old, new) {
            (Some(old), new) if self.precedence(Some(old)) > self.precedence(new) => {
                Some(Notice::OldAlone { leader: leader(old) })
            }
            (_, Some(new)) => Some(Notice::NewAlone { leader: leader(new) }),
            (_, None) => None,
        }
    }
}
