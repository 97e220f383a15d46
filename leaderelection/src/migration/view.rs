//! The decisions of a [`Migration`](crate::Migration), without I/O: the record that two records show together, and the
//! order of a write.
//!
//! The numbers in comments are those of the rules in [the protocol](crate::protocol).

use std::collections::VecDeque;

use crate::election::is_annotation;
use crate::lock::VersionedRecord;
use crate::record::{LeaderElectionRecord, RELEASED_LEASE};
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct View {
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
    /// Remembers a write that is about to be sent. A request to a leader is not remembered, because it keeps the write id of
    /// the leader's record.
    pub fn writes(&mut self, record: &LeaderElectionRecord, identity: &str) {
        if !record.is_released() && record.holder_identity != identity {
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
        let record = self.record(old, new, &versions);
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
        old: Option<LeaderElectionRecord>,
        new: Option<LeaderElectionRecord>,
        versions: &Versions,
    ) -> Option<LeaderElectionRecord> {
        let [old_own, new_own] = [&old, &new].map(|half| half.as_ref().and_then(|half| self.own_write(half)).cloned());
        if let (Some(old), Some(new)) = (&old, &new)
            && old.write_id.is_some()
            && old.write_id == new.write_id
            && new_own.as_ref().is_none_or(|own| own.is_awaited)
        {
            // M3: one write that has landed on both.
            if let Some(landed) = new_own {
                self.own.retain(|own| *own == landed);
            }
            return Some(LeaderElectionRecord {
                preferred_holder: new.preferred_holder.clone().or_else(|| old.preferred_holder.clone()),
                ..joined(new.clone(), Some(old))
            });
        }
        if let Some((record, shown)) = &self.shown {
            let goes_on =
                |half: Option<&LeaderElectionRecord>, is_own, before: Option<&Version>, now: Option<&Version>| {
                    is_own || before == now || half.is_some_and(|half| is_annotation(half, record))
                };
            if goes_on(old.as_ref(), old_own.is_some(), shown.old.as_ref(), versions.old.as_ref())
                && goes_on(new.as_ref(), new_own.is_some(), shown.new.as_ref(), versions.new.as_ref())
            {
                // M7: nothing has changed but halves of own writes, and the name of the next leader.
                let asked = [&old, &new].into_iter().flatten().find_map(|half| half.preferred_holder.clone());
                let preferred_holder = record.preferred_holder.clone().or(asked);
                return Some(LeaderElectionRecord { preferred_holder, ..record.clone() });
            }
        }
        let highest = old.iter().chain(&new).map(|half| half.leader_transitions).max()?;
        let others = [old.filter(|_| old_own.is_none()), new.filter(|_| new_own.is_none())];
        Some(of_others(others, highest, versions))
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
        let held = |half: Option<&LeaderElectionRecord>| {
            let half = half.filter(|half| !half.is_released() && self.own_write(half).is_none())?;
            Some((half.holder_identity.clone(), half.leader_transitions))
        };
        let (old, new) = (held(old), held(new));
        let before = self.shown.as_ref().map(|(_, versions)| versions);
        match (old, new) {
            (Some((old, _)), Some((new, _))) if old == new => self.doubles = 0,
            (Some((old, _)), Some((new, _))) if self.doubles >= 2 => return Some(Notice::TwoLeaders { old, new }),
            (Some((old, old_token)), Some((new, new_token))) => {
                // A single look of this kind may show a takeover.
                let both_renew = before.is_some_and(|before| before.old != versions.old && before.new != versions.new);
                self.doubles = if both_renew { self.doubles + 1 } else { 0 };
                return Some(match old_token > new_token {
                    true => Notice::OldAlone { leader: old },
                    false => Notice::NewAlone { leader: new },
                });
            }
            (Some((leader, _)), None) => return Some(Notice::OldAlone { leader }),
            (None, Some((leader, _))) => return Some(Notice::NewAlone { leader }),
            (None, None) => {}
        }
        None
    }
}

/// The record of halves that are not one write: whoever holds one of the locks bars both (M4).
fn of_others(others: [Option<LeaderElectionRecord>; 2], highest: u64, versions: &Versions) -> LeaderElectionRecord {
    let lease = others.iter().flatten().filter(|half| !half.is_released()).map(|half| half.lease_duration).max();
    let [old, new] = others;
    // The later term has the higher token.
    let rank =
        |half: &Option<LeaderElectionRecord>| half.as_ref().map(|half| (!half.is_released(), half.leader_transitions));
    let (front, back) = if rank(&old) > rank(&new) { (old, new) } else { (new, old) };
    let front = front.unwrap_or_else(|| LeaderElectionRecord::new("", RELEASED_LEASE));
    LeaderElectionRecord {
        lease_duration: lease.unwrap_or(RELEASED_LEASE),
        // M5: the token of the next term is above those of both.
        leader_transitions: highest,
        // Neither half is the whole, so no election may take the whole for its own write, or for a write that it knows.
        write_id: Some(versions.version().as_str().to_owned()),
        // A request for the lease would be a write into both, and the holder of one would not know it for its own record.
        rank: None,
        ..joined(front, back.as_ref())
    }
}

/// Adds to a record what a write over both halves must not lose: the higher token, marks of jobs, unknown fields.
fn joined(mut record: LeaderElectionRecord, other: Option<&LeaderElectionRecord>) -> LeaderElectionRecord {
    if let Some(other) = other {
        record.leader_transitions = record.leader_transitions.max(other.leader_transitions);
        record.keep_unknown_of(other);
    }
    record
}
