//! Rules S3, S4, S7 and S8: watches other sessions.
//!
//! An entry of `peers` has two halves: `session` is the state for the rules, `peer` has the notes of this policy.

use std::sync::Arc;
use std::time::Duration;

use leaderelection_protocol::lease::ReadError;
use leaderelection_protocol::policy::back_off::SLOW;
use leaderelection_protocol::policy::rhythm::Rhythm;
use leaderelection_protocol::record::Versioned;

use super::effect::{Effect, Fact, PeerRequest};
use super::input::SessionEntropy;
use super::listing::Page;
use super::member::{Housekeeping, Member};
use super::peer::{self, Peer};
use super::{LockId, SessionId};
use crate::clock::LocalInstant;
use crate::election::{Answer, Failure, Jitter, Purpose, Write};
use crate::lock::VersionedRecord;
use crate::store::{StoreErrorKind, Version};

impl Member {
    /// Remembers a session that a lock or a listing names, and reads its object soon. `stated` is the lease that a lock states for it.
    pub(super) fn discover_session(&mut self, now: LocalInstant, id: &SessionId, stated: Option<Duration>) {
        let before = self.peers.get(id).map(|(session, _)| session.lease_duration());
        self.peers.discover(id, stated);
        let Some((session, peer)) = self.peers.get_mut(id) else { return };
        if before.is_none() {
            *peer = Peer::new(now, session.lease_duration());
        }
        if before != Some(session.lease_duration()) {
            self.plan_peer(now, id);
        }
    }

    pub(super) fn list_sessions(&mut self, now: LocalInstant) {
        if let Some(from) = self.session_listing.ask(now) {
            self.housekeeping_in_flight += 1;
            self.effects.push_back(Effect::ListSessions { from });
        }
    }

    /// Handles a page of the listing of all sessions.
    pub(super) fn on_sessions(&mut self, now: LocalInstant, page: Result<Page<SessionId>, Failure>, jitter: Jitter) {
        if !self.session_listing.answered() {
            return;
        }
        self.housekeeping_in_flight -= 1;
        self.apply_retry_after(now, page.as_ref().err().copied());
        let Ok(page) = page else {
            let asks_again = self.session_listing.failed();
            if !asks_again {
                self.listed_sessions.clear();
            }
            let pause = self.poll_pause(jitter);
            return self.housekeeping.set(Housekeeping::Sessions, now + pause);
        };
        for (id, version) in page.listed {
            let is_known_unreadable = self.unreadable_objects.get(&id) == Some(&version);
            // Such an object is read again only if a lock names its session: then this session is known, and not over.
            if is_known_unreadable && self.peers.get(&id).is_none_or(|(session, _)| session.is_over()) {
                self.listed_sessions.insert(id);
            } else if self.own.as_ref().is_none_or(|own| own.id != id) {
                self.discover_session(now, &id, None);
                match version {
                    Some(version) => self.observe_version(now, &id, &version, jitter),
                    // Without a version, only a read shows a renewal, but messages may postpone reads.
                    None if self.peers.get(&id).is_some_and(|(_, peer)| peer.suppresses_polls()) => {}
                    None => self.read_soon(now, &id),
                }
                self.listed_sessions.insert(id);
            }
        }
        let Some(listing_took) = self.session_listing.go_on(now, page.next) else {
            // Another page follows.
            return self.housekeeping.set(Housekeeping::Sessions, now);
        };
        self.knows_sessions = true;
        let opened_at = self.own.as_ref().filter(|own| own.term.is_some()).map(|own| own.opened_at);
        // Only a listing that began after the local session was opened shows all sessions that were opened before it.
        self.has_listed_members |= opened_at.is_some_and(|opened_at| opened_at <= now - listing_took);
        self.find_missing_sessions(now);
        // Only now is it known if another process has a session with this identity (rule S1).
        self.open_soon(now);
        self.learn_members(now);
        let pause = if opened_at.is_some() && !self.has_listed_members {
            Duration::ZERO
        } else if self.lists_instead_of_reading() {
            self.poll_pause(jitter)
        } else {
            // With balance, the search is frequent: a new member gets locks once others have seen it for one lease.
            let longest = if self.rules.balance { self.rules.election.lease_duration } else { Duration::MAX };
            self.rules.scan_interval.min(longest)
        };
        self.housekeeping.set(Housekeeping::Sessions, now + pause);
    }

    fn read_soon(&mut self, now: LocalInstant, id: &SessionId) {
        self.change_peer(id, |peer| peer.poll_at = now);
        self.plan_peer(now, id);
    }

    /// Handles the version of a session's object in a listing. Some stores return versions in another form in listings
    /// than in reads, so only a difference from the last listing shows a change (rule S3).
    fn observe_version(&mut self, now: LocalInstant, id: &SessionId, version: &Version, jitter: Jitter) {
        let scan_interval = self.rules.scan_interval;
        let end_delay = jitter.of(self.rules.election.pace().longest_spread());
        let lists = self.lists_instead_of_reading();
        let before = self.peers.get(id).and_then(|(session, _)| session.listed().cloned());
        self.peers.listed(now, id, version.clone());
        let Some((session, peer)) = self.peers.get_mut(id) else { return };
        let (suppresses_polls, patience) = (peer.suppresses_polls(), peer.patience);
        let found = session.found().map(|found| &found.version);
        if session.is_over() {
            // A session that is over never comes back, so the version says nothing.
        } else if session.expires_at().is_none() {
            // Only a read shows the content. This member needs it to know the session's identity, and to end the session (rule S4).
            peer.poll_at = now;
        } else if found == Some(version) || before.as_ref() == Some(version) {
            // The version has not changed, so the session may have ended, whatever its messages say. A read is needed
            // if the last one found no record, or is older than this version, or if messages postpone it for too long.
            if found.is_none() || peer.is_unread || suppresses_polls && now > peer.changed_at + patience {
                peer.poll_at_once(now);
            }
        } else if found.is_none() || peer.is_unread || lists || suppresses_polls {
            // The version has changed. In the case that is left out, the session is read regularly, and the next read
            // dates the change.
            let is_renewal = before.is_some() && found.is_some();
            peer.renews_our_identity |= is_renewal && peer.identity.as_ref() == Some(&self.identity);
            (peer.changed_at, peer.end_delay, peer.is_unread) = (now, end_delay, true);
            let is_known = found.is_some() && peer.identity.is_some();
            peer.poll_at = if is_known { peer.poll_at } else { now };
            if is_renewal {
                peer.postpone_polls(now, scan_interval);
            }
        }
        self.report_peer(id, None);
        self.plan_peer(now, id);
    }

    /// Reports the last renewal of a session, or one that a message reported.
    pub(super) fn report_peer(&mut self, id: &SessionId, reported_at: Option<LocalInstant>) {
        let Some((session, peer)) = self.peers.get(id).filter(|(session, _)| !session.is_over()) else { return };
        if session.expires_at().is_some() {
            let (since, lease) = (reported_at.unwrap_or(peer.changed_at), session.lease_duration());
            self.emit(Fact::PeerSeen { session: id.clone(), since, lease });
        }
    }

    /// Sets the time of the next request about a session.
    pub(super) fn plan_peer(&mut self, now: LocalInstant, id: &SessionId) {
        let delete_after = self.rules.delete_after;
        let Some((session, peer)) = self.peers.get(id) else { return };
        if peer.in_flight {
            return;
        }
        let task = Housekeeping::Peer(id.clone());
        if !session.is_over() {
            let ends_at = peer.ends_at(session).filter(|_| peer.may_be_ended());
            let at = ends_at.map_or(peer.poll_at, |at| at.min(peer.poll_at));
            return self.housekeeping.set(task, at.max(peer.not_before));
        }
        if self.peers.may_delete(id).is_ok() {
            if let Some(after) = delete_after {
                let at = peer.changed_at + after;
                self.housekeeping.set(task, at.max(now));
            }
            return;
        }
        // While a lock names the session, the lock is free only because this member remembers that the session has ended.
        let is_named = !peer.holds.is_empty();
        self.housekeeping.cancel(&task);
        if !is_named {
            self.past.retain(|past| past != id);
            self.peers.forget(id);
        }
    }

    /// Does what is due for a session: reads it, ends it, or deletes its object.
    pub(super) fn attend_to(&mut self, now: LocalInstant, id: &SessionId, draw: &mut impl SessionEntropy) {
        let Some((session, peer)) = self.peers.get(id) else { return };
        let (is_over, is_missing, is_named) = (session.is_over(), session.is_missing(), !peer.holds.is_empty());
        let is_end_due = peer.may_be_ended() && peer.ends_at(session).is_some_and(|at| at <= now);
        if is_end_due && is_missing && !is_named && !is_over {
            return self.forget(now, id);
        }
        let request = if is_over {
            let Ok(version) = self.peers.may_delete(id) else { return };
            PeerRequest::Delete(version.clone())
        } else if let (true, Ok(permit)) = (is_end_due, self.peers.may_end(now, id)) {
            let stamp = draw.stamp();
            let record = peer::ending_record(permit.replaces(), stamp.clone());
            PeerRequest::End(Write::of_session(permit.write(|| stamp.write_id, record), Purpose::Release))
        } else if self.peers.begin_read(now, id).is_ok() {
            PeerRequest::Read
        } else {
            return;
        };
        let Some((_, peer)) = self.peers.get_mut(id) else { return };
        (peer.in_flight, peer.polled_at) = (true, now);
        if let Some(peer_feed) = peer.peer_feed.as_mut().filter(|_| request == PeerRequest::Read) {
            // A read contradicts only messages that came before it was sent.
            peer_feed.asked();
        }
        self.housekeeping_in_flight += 1;
        self.effects.push_back(Effect::Peer { session: id.clone(), request });
    }

    pub(super) fn on_peer_answer(&mut self, now: LocalInstant, id: &SessionId, answer: Answer, jitter: Jitter) {
        if !self.answered(now, id, answer.failure()) {
            return;
        }
        match &answer {
            Answer::Read(Ok(_)) => self.change_peer(id, |peer| peer.give_up_at = None),
            Answer::Read(Err(failure)) | Answer::Written(Err(failure)) => {
                let patience = self.peers.longest_lease();
                self.change_peer(id, |peer| peer.failed(now, failure.kind, patience));
            }
            Answer::Written(Ok(_)) => {}
        }
        match answer {
            Answer::Written(Ok(version)) => {
                self.peers.end_answered(id, Some(version));
                return self.on_peer_ended(now, id);
            }
            Answer::Read(Ok(Some(found))) => self.observe_peer(now, id, found, jitter),
            Answer::Read(Ok(None)) => self.observe_no_record(now, id, false, jitter),
            Answer::Read(Err(Failure { kind: StoreErrorKind::Unreadable, .. })) => {
                self.observe_no_record(now, id, true, jitter);
            }
            // A failure shows neither a renewal nor a missing object, so the wait of rule S4 continues.
            Answer::Read(Err(Failure { kind, .. })) => {
                let pause = self.poll_pause(jitter);
                self.peers.read_answered(now, id, Err(ReadError::Failed));
                if let Some((session, peer)) = self.peers.get_mut(id) {
                    // Only a session that was never seen is read rarely. The end of any other has to be found early.
                    let is_slow = kind == StoreErrorKind::Fatal && session.expires_at().is_none();
                    peer.not_before = now + if is_slow { pause * SLOW } else { pause };
                }
            }
            Answer::Written(Err(failure)) => {
                // The next write that ends the session names the version that the next read shows.
                let soon = matches!(failure.kind, StoreErrorKind::Conflict | StoreErrorKind::Ambiguous);
                let pause = if soon { Duration::ZERO } else { self.poll_pause(jitter) };
                self.peers.end_answered(id, None);
                if let Some((session, peer)) = self.peers.get_mut(id) {
                    if soon && session.found().is_none() {
                        // There may be an object after all, so the wait restarts. The rules still count from the first
                        // read that found none, so the delay is prolonged.
                        let waits_until = now + session.lease_duration();
                        peer.end_delay = waits_until.saturating_since(session.expires_at().unwrap_or(now));
                    }
                    // A read comes before the next attempt, unless that only creates the object once more.
                    peer.is_unread |= soon || session.found().is_some();
                    (peer.poll_at, peer.not_before) = (now, now + pause);
                }
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
        match result {
            // Old objects only make listings longer, so the next attempt can wait as long as the first.
            Err(failure) if failure.kind != StoreErrorKind::Conflict => {
                self.change_peer(id, |peer| peer.changed_at = now);
            }
            // After a conflict, too: the object is gone, or has another version, which must not be deleted.
            Ok(()) | Err(_) => self.peers.deleted(id),
        }
        self.plan_peer(now, id);
    }

    /// Handles a read of a session's record.
    fn observe_peer(&mut self, now: LocalInstant, id: &SessionId, found: VersionedRecord, jitter: Jitter) {
        let end_delay = jitter.of(self.rules.election.pace().longest_spread());
        let (retry, scan_interval) = (self.rules.election.retry_period, self.rules.scan_interval);
        let lists = self.lists_instead_of_reading();
        let rules = Arc::clone(&self.rules);
        let VersionedRecord { record, version, .. } = found;
        let record = Arc::new(record);
        let Some((session, _)) = self.peers.get(id) else { return };
        let (was_over, had_record) = (session.is_over(), session.found().is_some());
        let is_same = session.found().is_some_and(|found| found.version == version);
        self.peers.read_answered(now, id, Ok(Some(Versioned { record: Arc::clone(&record), version })));
        let Some((session, peer)) = self.peers.get_mut(id) else { return };
        let rhythm = Rhythm::after_poll(peer.rhythm.as_ref(), peer.polled_at, !is_same || peer.is_unread, retry);
        // If an earlier read is needed, a listing will show that.
        peer.poll_at = if lists { now + scan_interval } else { rhythm.next_poll(retry) };
        peer.rhythm = Some(rhythm);
        if was_over {
            return;
        }
        if session.is_over() {
            return self.on_peer_ended(now, id);
        }
        let (is_new, released_before) = (peer.identity.is_none(), peer.released);
        let lease = self.rules.election.lease_duration;
        let lived = peer::lived(&record).min(lease);
        let has_new_contact = peer.learn_from(&rules.election, &record);
        let confirms_message = peer.compare_messages(Some(&record), is_same);
        if confirms_message {
            peer.postpone_polls(now, scan_interval);
        }
        peer.released = peer::release_count(&record);
        let releases = if is_new { 0 } else { peer.released.abs_diff(released_before) };
        let released_locks = peer::released_locks(&record);
        let was_unread = std::mem::take(&mut peer.is_unread);
        // If the read shows no change, it may be older than a listing that has shown one, so the times stay.
        if !is_same {
            // A listing that has shown the change of a known record has set these already.
            if !was_unread || !had_record {
                peer.renews_our_identity |= had_record && peer.identity.as_ref() == Some(&self.identity);
                peer.end_delay = end_delay;
            }
            peer.changed_at = session.expires_at().map_or(now, |at| at - session.lease_duration());
        }
        if is_new {
            // The session itself states how long it has lived, because this member may be newer (rule S9).
            peer.alive_since = now - lived;
        }
        let takes_locks_at = peer.takes_locks_at(lease);
        if let (true, Some(holder)) = (has_new_contact, &peer.identity) {
            let (session, holder, address) = (id.clone(), holder.clone(), peer.address.clone());
            self.emit(Fact::PeerFound { session, holder, address });
        }
        self.report_peer(id, None);
        if is_new && self.rules.balance {
            self.housekeeping.set_earlier(Housekeeping::Balance, takes_locks_at);
            if self.lists_instead_of_reading() {
                // By another member's faster clock, locks may be handed over to the new member already.
                self.poll_locks_soon(now);
            }
        }
        if releases > 0 {
            self.poll_released(now, id, releases, &released_locks);
        }
        self.report_duplicate(id);
    }

    /// Reports another process that renews a session under this member's identity.
    fn report_duplicate(&mut self, id: &SessionId) {
        // A late renewal of an earlier session of this process is not a duplicate identity.
        let is_past = self.past.contains(id);
        let Some((_, peer)) = self.peers.get_mut(id) else { return };
        let is_duplicate = peer.renews_our_identity && !is_past;
        if is_duplicate && !std::mem::replace(&mut peer.duplicate_reported, true) {
            self.emit(Fact::DuplicateIdentity { session: id.clone() });
        }
    }

    /// Frees the locks of a session that is over.
    pub(super) fn on_peer_ended(&mut self, now: LocalInstant, id: &SessionId) {
        let Some((_, peer)) = self.peers.get_mut(id) else { return };
        peer.changed_at = now;
        let (held, identity): (Vec<u32>, _) = (peer.holds.iter().copied().collect(), peer.identity.clone());
        self.emit(Fact::PeerEnded { session: id.clone() });
        // This member first waits for members with a better rank, but no longer for the preferred one if it has ended.
        for lock in held {
            self.announce(LockId(lock), None);
            self.begin_waits(now, LockId(lock));
        }
        if let Some(identity) = identity {
            self.stop_waiting_for(now, &identity);
        }
        // The session may have taken more locks since the last scan.
        self.poll_locks_soon(now);
        self.plan_peer(now, id);
        self.open_soon(now);
    }

    /// Notes that the request about this session is no longer in flight, and follows the `Retry-After` of its failure.
    /// Returns `false` if none was in flight.
    fn answered(&mut self, now: LocalInstant, id: &SessionId, failure: Option<Failure>) -> bool {
        self.apply_retry_after(now, failure);
        let was_in_flight = self.peers.get_mut(id).is_some_and(|(_, peer)| std::mem::take(&mut peer.in_flight));
        self.housekeeping_in_flight -= usize::from(was_in_flight);
        was_in_flight
    }

    fn change_peer(&mut self, id: &SessionId, change: impl FnOnce(&mut Peer)) {
        if let Some((_, peer)) = self.peers.get_mut(id) {
            change(peer);
        }
    }

    /// Returns `identity`, without a copy if the notes about its session have it already.
    pub(super) fn share_identity(&self, session: &SessionId, identity: &str) -> Arc<str> {
        let known = self.peers.get(session).and_then(|(_, peer)| peer.identity.clone());
        known.filter(|known| **known == *identity).unwrap_or_else(|| identity.into())
    }
}
