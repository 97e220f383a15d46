//! Rules S3, S4, S7 and S8: the watch over other sessions.

use std::sync::Arc;
use std::time::Duration;

use super::effect::{Effect, Fact, PeerRequest};
use super::input::DrawSession;
use super::listing::Page;
use super::member::{Housekeeping, Member};
use super::peer::{self, Peer, Sight};
use super::rhythm::Rhythm;
use super::{LockId, SessionId};
use crate::clock::LocalInstant;
use crate::election::{Answer, Failure, Jitter, SLOW};
use crate::lock::VersionedRecord;
use crate::lock::record::LeaderElectionRecord;
use crate::store::{StoreErrorKind, Version};

/// The divisor of the retry period for the spread of the writes that end a session.
pub(super) const SPREAD: u32 = 20;

impl Member {
    /// Remembers a session that a lock or a listing names, and reads its object soon. The lease that a lock tells counts until a
    /// read shows the object, which somebody may have deleted (rule S4).
    pub(super) fn hear_of(&mut self, now: LocalInstant, session: &SessionId, told: Option<Duration>) {
        let is_new = !self.peers.contains_key(session);
        if is_new {
            let longest = self.longest_lease();
            self.peers.insert(session.clone(), Peer::new(now, longest));
        }
        let Some(peer) = self.peers.get_mut(session) else { return };
        let told = told.filter(|told| peer.identity.is_none() && peer.lease != *told);
        peer.lease = told.unwrap_or(peer.lease);
        if is_new || told.is_some() {
            self.plan_peer(now, session);
        }
    }

    /// The lease of a session that nobody tells (rule S4).
    pub(super) fn longest_lease(&self) -> Duration {
        self.peers.values().map(|peer| peer.lease).fold(self.rules.election.lease_duration, Duration::max)
    }

    pub(super) fn list_sessions(&mut self, now: LocalInstant) {
        if let Some(from) = self.session_listing.ask(now) {
            self.housekeeping_in_flight += 1;
            self.effects.push_back(Effect::ListSessions { from });
        }
    }

    /// Takes a page of the listing of all sessions.
    pub(super) fn on_sessions(&mut self, now: LocalInstant, page: Result<Page<SessionId>, Failure>, jitter: Jitter) {
        if !self.session_listing.answered() {
            return;
        }
        self.housekeeping_in_flight -= 1;
        self.obey(now, page.as_ref().err().copied());
        let Ok(page) = page else {
            if !self.session_listing.failed() {
                self.listed_sessions.clear();
            }
            let pause = self.poll_pause(jitter);
            return self.housekeeping.set(Housekeeping::Sessions, now + pause);
        };
        for (id, version) in page.listed {
            let is_junk = self.junk.get(&id) == Some(&version);
            // Whoever names the session of such an object has it looked at once more.
            if is_junk && self.peers.get(&id).is_none_or(|peer| peer.ended) {
                self.listed_sessions.insert(id);
            } else if self.own.as_ref().is_none_or(|own| own.id != id) {
                self.hear_of(now, &id, None);
                match version {
                    Some(version) => self.saw_version(now, &id, &version, jitter),
                    // Only a read shows the version, unless words put reads off.
                    None if self.peers.get(&id).is_some_and(Peer::is_spared) => {}
                    None => self.look_soon(now, &id),
                }
                self.listed_sessions.insert(id);
            }
        }
        let Some(took) = self.session_listing.go_on(now, page.next) else {
            return self.housekeeping.set(Housekeeping::Sessions, now);
        };
        self.knows_sessions = true;
        let opened_at = self.own.as_ref().filter(|own| own.term.is_some()).map(|own| own.opened_at);
        self.has_listed_members |= opened_at.is_some_and(|opened_at| opened_at <= now - took);
        self.look_for_missing_sessions(now);
        // Only now is it known whether another process's session has this identity (rule S1).
        self.open_soon(now);
        self.learn_members(now);
        let pause = if opened_at.is_some() && !self.has_listed_members {
            Duration::ZERO
        } else if self.lists_instead_of_reading() {
            self.poll_pause(jitter)
        } else {
            // A member that joins waits for its share until the others have seen it live for a lease (rule S9).
            let longest = if self.rules.balance { self.rules.election.lease_duration } else { Duration::MAX };
            self.rules.look_around.min(longest)
        };
        self.housekeeping.set(Housekeeping::Sessions, now + pause);
    }

    fn look_soon(&mut self, now: LocalInstant, id: &SessionId) {
        self.change_peer(id, |peer| peer.look_at = now);
        self.plan_peer(now, id);
    }

    /// Takes the version of a session's object from a listing. Some stores spell versions in listings in another way than in
    /// their other answers, so a listing is compared with the last listing alone (rule S3).
    fn saw_version(&mut self, now: LocalInstant, id: &SessionId, version: &Version, jitter: Jitter) {
        let (retry, look_around) = (self.rules.election.retry_period, self.rules.look_around);
        let (spread, lists) = (jitter.of(retry / SPREAD), self.lists_instead_of_reading());
        let Some(peer) = self.peers.get_mut(id) else { return };
        let before = peer.listed.replace(version.clone());
        let (is_spared, patience) = (peer.is_spared(), peer.patience);
        match &mut peer.sight {
            // Only a read shows the content, which others need to know, and which the end of the session replaces (rule S4).
            None => peer.look_at = now,
            Some(_) if peer.ended => {}
            Some(sight) if sight.version.as_ref() == Some(version) || before.as_ref() == Some(version) => {
                // A session that is not renewed may have ended, whatever it says.
                if sight.record.is_none() || is_spared && now > sight.since + patience {
                    peer.doubt(now);
                }
            }
            // A read may have shown this version by another spelling, long ago, and the next one comes within a retry period.
            // The moment is that of an earlier version, so the read of this one must not keep the moment.
            Some(sight) if sight.version.is_some() && sight.record.is_some() && !lists && !is_spared => {
                sight.is_listed = false;
            }
            Some(sight) => {
                let is_renewal = before.is_some() && sight.version.is_some();
                peer.renews |= is_renewal && peer.identity.as_ref() == Some(&self.identity);
                (sight.since, sight.is_listed) = (now, true);
                (sight.spread, sight.record) = (spread, None);
                let is_known = sight.version.is_some() && peer.identity.is_some();
                peer.look_at = if is_known { peer.look_at } else { now };
                if is_renewal {
                    peer.confirm(now, look_around);
                }
            }
        }
        self.tell_of_peer(id, None);
        self.plan_peer(now, id);
    }

    /// Tells of the last renewal of a session, or of one that was heard of.
    pub(super) fn tell_of_peer(&mut self, id: &SessionId, heard_at: Option<LocalInstant>) {
        let Some(peer) = self.peers.get(id).filter(|peer| !peer.ended) else { return };
        if let Some(sight) = &peer.sight {
            let (session, since, lease) = (id.clone(), heard_at.unwrap_or(sight.since), peer.lease);
            self.tell(Fact::PeerSeen { session, since, lease });
        }
    }

    /// Sets the time of the next request about a session.
    pub(super) fn plan_peer(&mut self, now: LocalInstant, id: &SessionId) {
        let delete_after = self.rules.delete_after;
        let Some(peer) = self.peers.get(id) else { return };
        if peer.in_flight {
            return;
        }
        let task = Housekeeping::Peer(id.clone());
        if !peer.ended {
            let expires_at = peer.expires_at().filter(|_| peer.may_be_ended());
            let at = expires_at.map_or(peer.look_at, |at| at.min(peer.look_at));
            return self.housekeeping.set(task, at.max(peer.not_before));
        }
        match &peer.sight {
            Some(Sight { version: Some(_), since, .. }) => {
                if let Some(after) = delete_after {
                    let at = *since + after;
                    self.housekeeping.set(task, at.max(now));
                }
            }
            // While a lock names the session, the memory of its end is all that makes the lock free.
            _ if peer.holds.is_empty() => {
                self.housekeeping.cancel(&task);
                self.past.retain(|past| past != id);
                self.peers.remove(id);
            }
            _ => self.housekeeping.cancel(&task),
        }
    }

    /// Does what is due about a session: looks at it, ends it, or deletes its object.
    pub(super) fn attend_to(&mut self, now: LocalInstant, id: &SessionId, draw: &mut impl DrawSession) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        let has_expired = peer.may_be_ended() && peer.expires_at().is_some_and(|at| at <= now);
        if has_expired && peer.is_missing() && peer.holds.is_empty() {
            return self.forget(now, id);
        }
        let request = match &peer.sight {
            Some(Sight { version: Some(version), .. }) if peer.ended => PeerRequest::Delete(version.clone()),
            _ if peer.ended => return,
            Some(Sight { version: Some(version), record: Some(record), .. }) if has_expired => {
                // A renewal that lands first changes the version: this write fails, and the session lives on.
                PeerRequest::End(peer::end(LeaderElectionRecord::clone(record), Some(version.clone()), draw.stamp()))
            }
            // A read that shows no object may be false, so a conditional write decides.
            Some(_) if has_expired && peer.is_missing() => {
                PeerRequest::End(peer::end(LeaderElectionRecord::new("", Duration::ZERO), None, draw.stamp()))
            }
            _ => PeerRequest::Look,
        };
        (peer.in_flight, peer.asked_at) = (true, now);
        if let Some(hearing) = peer.hearing.as_mut().filter(|_| request == PeerRequest::Look) {
            hearing.asked();
        }
        self.housekeeping_in_flight += 1;
        self.effects.push_back(Effect::Peer { session: id.clone(), request });
    }

    pub(super) fn on_peer_answer(&mut self, now: LocalInstant, id: &SessionId, answer: Answer, jitter: Jitter) {
        if !self.answered(now, id, answer.failure()) {
            return;
        }
        match &answer {
            Answer::Read(Ok(_)) => self.change_peer(id, |peer| peer.hopeless_from = None),
            Answer::Read(Err(failure)) | Answer::Written(Err(failure)) => {
                let patience = self.longest_lease();
                self.change_peer(id, |peer| peer.failed(now, failure.kind, patience));
            }
            Answer::Written(Ok(_)) => {}
        }
        match answer {
            Answer::Written(Ok(version)) => return self.end_peer(now, id, Some(version)),
            Answer::Read(Ok(Some(found))) => self.saw_peer(now, id, found, jitter),
            Answer::Read(Ok(None)) => self.saw_no_record(now, id, false, jitter),
            Answer::Read(Err(Failure { kind: StoreErrorKind::Unreadable, .. })) => {
                self.saw_no_record(now, id, true, jitter);
            }
            // A failure shows neither a renewal nor a missing object, so the wait of rule S4 runs on.
            Answer::Read(Err(Failure { kind, .. })) => {
                let pause = self.poll_pause(jitter);
                self.change_peer(id, |peer| {
                    // The end of a session that was seen is found as soon as it can be.
                    let is_slow = kind == StoreErrorKind::Fatal && peer.sight.is_none();
                    peer.not_before = now + if is_slow { pause * SLOW } else { pause };
                });
            }
            Answer::Written(Err(failure)) => {
                // The next end names the version that the next read shows.
                let soon = matches!(failure.kind, StoreErrorKind::Conflict | StoreErrorKind::Ambiguous);
                let pause = if soon { Duration::ZERO } else { self.poll_pause(jitter) };
                self.change_peer(id, |peer| {
                    match &mut peer.sight {
                        Some(Sight { version: Some(_), record, .. }) => *record = None,
                        // There may be an object after all.
                        sight if soon => *sight = None,
                        _ => {}
                    }
                    (peer.look_at, peer.not_before) = (now, now + pause);
                });
            }
        }
        self.plan_peer(now, id);
        self.learn_members(now);
        self.open_soon(now);
    }

    pub(super) fn on_deleted(&mut self, now: LocalInstant, id: &SessionId, result: Result<(), Failure>) {
        if !self.answered(now, id, result.err()) {
            return;
        }
        self.change_peer(id, |peer| {
            if let Some(sight) = &mut peer.sight {
                match result {
                    // Old objects only make listings longer, so the next try can wait as long as the first.
                    Err(failure) if failure.kind != StoreErrorKind::Conflict => sight.since = now,
                    _ => sight.version = None,
                }
            }
        });
        self.plan_peer(now, id);
    }

    /// Takes a read of a session's record.
    fn saw_peer(&mut self, now: LocalInstant, id: &SessionId, found: VersionedRecord, jitter: Jitter) {
        let spread = jitter.of(self.rules.election.retry_period / SPREAD);
        let (retry, look_around) = (self.rules.election.retry_period, self.rules.look_around);
        let lists = self.lists_instead_of_reading();
        let rules = Arc::clone(&self.rules);
        let Some(peer) = self.peers.get_mut(id) else { return };
        let VersionedRecord { record, version, .. } = found;
        let is_known = |sight: &Sight| sight.version.as_ref() == Some(&version) && sight.record.is_some();
        let is_renewed = !peer.sight.as_ref().is_some_and(is_known);
        let rhythm = Rhythm::after_look(peer.rhythm.as_ref(), peer.asked_at, is_renewed, retry);
        // A listing shows a reason for an earlier look.
        peer.look_at = if lists { now + look_around } else { rhythm.next_look(retry) };
        peer.rhythm = Some(rhythm);
        if peer.ended {
            return;
        }
        if record.is_released() {
            return self.end_peer(now, id, Some(version));
        }
        let (is_new, released_before) = (peer.identity.is_none(), peer.released);
        let lease = self.rules.election.lease_duration;
        let lived = peer::lived(&record).min(lease);
        let is_found = peer.describe(&rules.election, &record);
        if peer.compare(Some(&record), peer.version() == Some(&version)) {
            peer.confirm(now, look_around);
        }
        let since = peer.date_of(&record, now);
        peer.released = peer::released(&record);
        let releases = if is_new { 0 } else { peer.released.abs_diff(released_before) };
        let let_go = peer::let_go(&record);
        match &mut peer.sight {
            // An old answer may show this after a listing has shown what is newer, so it moves no moment.
            Some(sight) if sight.version.as_ref() == Some(&version) => sight.record = Some(Box::new(record)),
            Some(sight) if sight.is_listed && peer.listed.as_ref() == Some(&version) => {
                (sight.since, sight.is_listed) = (sight.since.min(since), false);
                (sight.version, sight.record) = (Some(version), Some(Box::new(record)));
            }
            before => {
                let is_renewal = before.as_ref().is_some_and(|sight| sight.version.is_some());
                peer.renews |= is_renewal && peer.identity.as_ref() == Some(&self.identity);
                let record = Some(Box::new(record));
                peer.sight = Some(Sight { record, ..Sight::of(Some(version), since, spread) });
            }
        }
        if is_new {
            // By the session's own count, because this member may be the newer one (rule S9).
            peer.alive_since = now - lived;
        }
        let settles_at = peer.settles_at(lease);
        if let (true, Some(holder)) = (is_found, &peer.identity) {
            let (session, holder, address) = (id.clone(), holder.clone(), peer.address.clone());
            self.tell(Fact::PeerFound { session, holder, address });
        }
        self.tell_of_peer(id, None);
        if is_new && self.rules.balance {
            self.housekeeping.hurry(Housekeeping::Balance, settles_at);
            if self.lists_instead_of_reading() {
                // Another member's clock may be faster, and locks move as soon as the first of all clocks allows it.
                self.look_at_locks_soon(now);
            }
        }
        if releases > 0 {
            self.look_at_released(now, id, releases, &let_go);
        }
        self.report_clash(id);
    }

    /// Reports another process that renews a session under this member's identity.
    fn report_clash(&mut self, id: &SessionId) {
        // A late renewal of an earlier session of this very process is no clash.
        let is_past = self.past.contains(id);
        let Some(peer) = self.peers.get_mut(id) else { return };
        let clashes = peer.renews && !is_past;
        if clashes && !std::mem::replace(&mut peer.clash_reported, true) {
            self.tell(Fact::IdentityClash { session: id.clone() });
        }
    }

    /// Treats a session as over for good: its locks are free.
    pub(super) fn end_peer(&mut self, now: LocalInstant, id: &SessionId, version: Option<Version>) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        // No process uses an ID twice, so nothing can take this back.
        peer.ended = true;
        peer.sight = Some(Sight::of(version, now, Duration::ZERO));
        let (held, identity): (Vec<u32>, _) = (peer.holds.iter().copied().collect(), peer.identity.clone());
        self.tell(Fact::PeerEnded { session: id.clone() });
        for lock in held {
            self.announce(LockId(lock), None);
            self.freed(now, LockId(lock));
        }
        if let Some(identity) = identity {
            self.waits_no_more_for(now, &identity);
        }
        // The session may have taken further locks since this member looked.
        self.look_at_locks_soon(now);
        self.plan_peer(now, id);
        self.open_soon(now);
    }

    /// Returns `true` if a request about this session was in flight.
    fn answered(&mut self, now: LocalInstant, id: &SessionId, failure: Option<Failure>) -> bool {
        self.obey(now, failure);
        let was_in_flight = self.peers.get_mut(id).is_some_and(|peer| std::mem::take(&mut peer.in_flight));
        self.housekeeping_in_flight -= usize::from(was_in_flight);
        was_in_flight
    }

    fn change_peer(&mut self, id: &SessionId, change: impl FnOnce(&mut Peer)) {
        if let Some(peer) = self.peers.get_mut(id) {
            change(peer);
        }
    }

    /// The identity of a session's member, shared with the session if that is known.
    pub(super) fn share_identity(&self, session: &SessionId, identity: &str) -> Arc<str> {
        let known = self.peers.get(session).and_then(|peer| peer.identity.clone());
        known.filter(|known| **known == *identity).unwrap_or_else(|| identity.into())
    }
}
