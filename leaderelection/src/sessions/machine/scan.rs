//! Rule S8: scans, which read or list all locks.

use std::time::Duration;

use leaderelection_protocol::session::LockView;

use super::effect::Effect;
use super::listing::Page;
use super::lock::{Lock, Phase};
use super::member::{Housekeeping, Member};
use super::rules::SessionConfig;
use super::{LockId, SessionId};
use crate::clock::LocalInstant;
use crate::election::{Failure, Jitter};

impl Member {
    /// Plans a scan of all locks, at `at` or sooner.
    pub(super) fn poll_locks_soon(&mut self, at: LocalInstant) {
        if self.lock_listing.began_at.is_some() {
            // The listing in flight may have begun before the change that this scan should find.
            self.list_again = Some(self.list_again.map_or(at, |before| before.min(at)));
        } else if self.window().is_some() {
            self.housekeeping.set_earlier(Housekeeping::Locks, at);
        }
    }

    /// Returns `true` if listing the locks costs less than reading each.
    pub(super) fn lists_locks_instead_of_reading(&self) -> bool {
        self.number_of_locks() > self.rules.reads_per_listing
    }

    /// The pause between two scans. While a member is new, others hand locks over to it. A member that lists sessions
    /// then scans once per retry period, because listings do not show how many locks each session has released.
    fn scan_pause(&self, now: LocalInstant) -> Duration {
        let SessionConfig { election, scan_interval, balance, .. } = &*self.rules;
        // The time depends on the lease of the member that hands over, which may be the longest one.
        let scans_often =
            *balance && self.lists_instead_of_reading() && self.has_newer_member(now, self.peers.longest_lease() * 3);
        if scans_often { election.retry_period } else { *scan_interval }
    }

    /// Returns `true` if any member's session is younger than `age`, including the local one.
    pub(super) fn has_newer_member(&self, now: LocalInstant, age: Duration) -> bool {
        self.own.as_ref().is_some_and(|own| now < own.opened_at + age)
            || self.peers.iter().any(|(_, session, peer)| peer.is_member(session) && now < peer.alive_since + age)
    }

    /// Scans all locks for changes (rule S8), or continues a scan.
    pub(super) fn poll_locks(&mut self, now: LocalInstant) {
        if self.window().is_none() {
            return;
        }
        self.housekeeping.set(Housekeeping::Locks, now + self.scan_pause(now));
        if self.lock_listing.began_at.is_none() {
            (self.scanned_at, self.reported_releases) = (now, 0);
            self.locks.iter_mut().for_each(|lock| lock.is_listed = false);
        }
        if !self.lists_locks_instead_of_reading() {
            return self.read_locks(now, |_| true);
        }
        if let Some(from) = self.lock_listing.ask(now) {
            self.housekeeping_in_flight += 1;
            self.effects.push_back(Effect::ListLocks { from });
        }
    }

    /// Reads the last `releases` locks that a session has released. `released_locks` has the hashes of their names, newest first. If it
    /// has too few, all locks are scanned.
    pub(super) fn poll_released(&mut self, now: LocalInstant, by: &SessionId, releases: u64, released_locks: &[u64]) {
        let Some(released_locks) = usize::try_from(releases).ok().and_then(|releases| released_locks.get(..releases))
        else {
            return self.poll_locks_soon(now);
        };
        for index in 0..self.locks.len() {
            let (id, lock) = (LockId::of(index), &self.locks[index]);
            if lock.phase == Phase::Competing && released_locks.contains(&lock.hash) && !self.is_ours(id) {
                // Only the first report begins the waits: repeated messages must not postpone the read.
                if self.last_releaser.insert(id.0, by.clone()).is_none() {
                    self.locks[index].free_since = now;
                }
            }
        }
        self.read_locks(now, |lock| released_locks.contains(&lock.hash));
    }

    /// Plans a read of each wanted lock.
    fn read_locks(&mut self, now: LocalInstant, wanted: impl Fn(&Lock) -> bool) {
        for index in 0..self.locks.len() {
            let lock = &mut self.locks[index];
            // A lock without a candidacy is read only if it may name this session.
            if wanted(lock) && (lock.phase != Phase::Idle || lock.in_doubt) {
                lock.must_read = true;
                self.plan(now, LockId::of(index));
            }
        }
    }

    /// Handles a page of the listing of all locks. A listing is a hint: only a read shows a lock.
    pub(super) fn on_locks(&mut self, now: LocalInstant, page: Result<Page<LockId>, Failure>, jitter: Jitter) {
        if !self.lock_listing.answered() {
            return;
        }
        self.housekeeping_in_flight -= 1;
        self.apply_retry_after(now, page.as_ref().err().copied());
        let page = match page {
            Ok(page) => page,
            Err(_) if self.lock_listing.failed() => {
                let pause = jitter.of(self.rules.election.retry_period);
                return self.housekeeping.set(Housekeeping::Locks, now + pause);
            }
            Err(_) => {
                // Without the listing, changed locks have to be found by reads.
                self.list_again = None;
                self.housekeeping.set(Housekeeping::Locks, now + self.scan_pause(now));
                return self.read_locks(now, |lock| !lock.is_listed);
            }
        };
        for (id, version) in page.listed {
            let Some(lock) = self.locks.get_mut(id.0 as usize) else { continue };
            lock.is_listed = true;
            // If a request is in flight, its answer may be newer than this listing.
            if !self.table.is_busy(id.0) {
                lock.must_read |= version.is_none() || self.table.version(id.0) != version.as_ref();
                self.plan(now, id);
            }
        }
        match self.lock_listing.go_on(now, page.next) {
            None => self.housekeeping.set(Housekeeping::Locks, now),
            Some(took) => self.end_listing(now, took),
        }
    }

    /// Handles the end of a listing: locks that were not listed do not exist, unless the listing is false.
    fn end_listing(&mut self, now: LocalInstant, took: Duration) {
        // A short listing is covered by the margins of rule S5.
        self.listing_took = if took * 2 < self.rules.election.renew_deadline { Duration::ZERO } else { took };
        let next = now + self.scan_pause(now);
        let again = self.list_again.take().unwrap_or(next);
        self.housekeeping.set(Housekeeping::Locks, again.clamp(now, next));
        for index in 0..self.locks.len() {
            let (id, lock) = (LockId::of(index), &mut self.locks[index]);
            if lock.is_listed || self.table.is_busy(id.0) || self.vacant.contains(&id) {
                continue;
            }
            match self.table.view(id.0) {
                LockView::Unknown => {
                    // A hint is enough here: if the listing is false, the creation fails with a conflict, and a read follows.
                    self.table.not_listed(now, id.0);
                    self.begin_waits(now, id);
                    continue;
                }
                LockView::Absent(_) => {}
                _ => lock.must_read = true,
            }
            self.plan(now, id);
        }
    }
}
