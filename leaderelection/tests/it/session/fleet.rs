//! A few members on one store, driven step by step: every request is answered at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use leaderelection::clock::LocalInstant;
use leaderelection::election::{self, Answer, EntropySource, Failure, Jitter, Request, WorkEnd, Write, WriteMeta};
use leaderelection::implement::{PageToken, Version, VersionedRecord};
use leaderelection::sessions::machine::{
    Effect, Fact, Input, LockId, Member, Page, PeerRequest, SessionConfig, SessionEntropy, SessionId,
};
use leaderelection::{LeaderElectionRecord, StoreErrorKind};

/// Members, their store, and the time that all of them share.
#[derive(Default)]
pub(super) struct Fleet {
    pub(super) now: LocalInstant,
    pub(super) members: Vec<Driven>,
    pub(super) sessions: BTreeMap<SessionId, VersionedRecord>,
    pub(super) locks: BTreeMap<LockId, VersionedRecord>,
    pub(super) requests: Requests,
    /// The moments of the last writes of the sessions' objects.
    pub(super) renewed_at: BTreeMap<SessionId, LocalInstant>,
    /// The member that reads and lists as if this session had no object.
    pub(super) hidden_from: Option<(usize, SessionId)>,
    /// The sessions about which no request of others is carried out, with the error.
    pub(super) blocked: BTreeMap<SessionId, StoreErrorKind>,
    /// `true` if reads of locks show objects that are no records.
    pub(super) is_spoilt: bool,
    /// The number of further writes of locks whose senders learn nothing, and which may arrive later.
    pub(super) holds_back: usize,
    /// What their senders get; without one, no answer comes.
    pub(super) held_back_as: Option<StoreErrorKind>,
    pub(super) held_back: Vec<(LockId, Write)>,
    /// The number of further requests about locks that are carried out and answered with an error.
    pub(super) loses: usize,
    /// `true` if listings of sessions spell versions in another way than other answers.
    pub(super) spells_otherwise: bool,
    /// `true` if listings of sessions show no versions.
    pub(super) lists_names_alone: bool,
    /// The number of locks in a page of a listing; 0 for all.
    pub(super) page_size: usize,
    /// The number of further pages after the first that are not answered; of all pages, if a listing has one.
    pub(super) loses_pages: usize,
    /// The places of the pages that members asked for.
    pub(super) pages: Vec<Option<PageToken>>,
    /// `true` if requests about single locks are not answered.
    pub(super) is_silent: bool,
    /// The time after which the answers to the first member's requests about its own session come.
    pub(super) own_answers_take: Duration,
    /// The time after which the answers to requests about other sessions come.
    pub(super) peer_answers_take: Duration,
    /// The time that each page of a listing of locks takes.
    pub(super) pages_take: Duration,
    /// The answers that are in flight to members, with their moments.
    pub(super) on_their_way: Vec<(LocalInstant, usize, Input)>,
    /// The object that the next read of a lock shows, if that is not the truth.
    pub(super) old_reads: BTreeMap<LockId, VersionedRecord>,
}

/// The number of requests of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Requests {
    pub(super) reads: usize,
    pub(super) listings: usize,
    pub(super) session_writes: usize,
    pub(super) lock_writes: usize,
}

/// A member, and what its driver has seen.
pub(super) struct Driven {
    pub(super) member: Member,
    pub(super) alive: bool,
    /// `true` if the work of a term goes on after it was cancelled.
    pub(super) works_on: bool,
    /// `true` if the electors compete again after each term.
    pub(super) campaigns: bool,
    pub(super) facts: Vec<Fact>,
    pub(super) effects: Vec<Effect>,
    ids: Ids,
}

/// The names that a process draws.
pub(super) struct Ids {
    pub(super) name: String,
    pub(super) drawn: usize,
}

impl EntropySource for Ids {
    fn jitter(&mut self) -> Jitter {
        Jitter::default()
    }

    fn stamp(&mut self) -> WriteMeta {
        self.drawn += 1;
        WriteMeta { write_id: format!("{}-{}", self.name, self.drawn), time: DateTime::UNIX_EPOCH }
    }
}

impl SessionEntropy for Ids {
    fn session(&mut self) -> Arc<str> {
        self.drawn += 1;
        format!("session-{}-{}", self.name, self.drawn).into()
    }
}

/// client-go's timings, for the member `identity`.
pub(super) fn rules(identity: &str) -> SessionConfig {
    let seconds = Duration::from_secs;
    SessionConfig::new(election::ElectionConfig::new(identity, seconds(15), seconds(10), seconds(2)))
}

impl Fleet {
    /// Adds a member that competes for `locks` locks, and returns its index.
    pub(super) fn join(&mut self, rules: SessionConfig, locks: u32) -> usize {
        let index = self.members.len();
        let ids = Ids { name: format!("process-{index}"), drawn: 0 };
        let (facts, effects) = (Vec::new(), Vec::new());
        let member = Member::new(rules);
        self.members.push(Driven { member, alive: true, works_on: false, campaigns: true, facts, effects, ids });
        for lock in 0..locks {
            self.members[index].member.add_lock(&format!("shard-{lock}"));
        }
        self.give(index, Input::Begin);
        for lock in 0..locks {
            self.compete(index, LockId(lock));
        }
        index
    }

    fn compete(&mut self, index: usize, lock: LockId) {
        self.give(
            index,
            Input::Compete { lock, stand_back: Duration::ZERO, ends_with_work: false, job: None, one_attempt: false },
        );
    }

    /// Gives a member an input, and answers all its requests.
    pub(super) fn give(&mut self, index: usize, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let driven = &mut self.members[index];
            driven.member.handle(self.now, input, &mut driven.ids);
            while let Some(effect) = self.members[index].member.next() {
                let works_on = self.members[index].works_on;
                self.members[index].effects.push(effect.clone());
                match effect {
                    Effect::Own { session, request } => {
                        let answer = self.session(index, &session, request);
                        let input = Input::Own { session, answer };
                        let takes = if index == 0 { self.own_answers_take } else { Duration::ZERO };
                        inputs.extend(self.delayed(takes, index, input));
                    }
                    Effect::Peer { session, request } => {
                        let request = match request {
                            PeerRequest::Read => Request::Read,
                            PeerRequest::End(write) => Request::Write(write),
                            PeerRequest::Delete(_) => {
                                let refused = self.blocked.get(&session).map(|kind| failure(*kind));
                                if refused.is_none() {
                                    self.sessions.remove(&session);
                                }
                                let input = Input::Deleted { session, result: refused.map_or(Ok(()), Err) };
                                inputs.extend(self.delayed(self.peer_answers_take, index, input));
                                continue;
                            }
                        };
                        let answer = match self.blocked.get(&session).map(|kind| failure(*kind)) {
                            Some(failure) if request == Request::Read => {
                                self.requests.reads += 1;
                                Answer::Read(Err(failure))
                            }
                            Some(failure) => Answer::Written(Err(failure)),
                            None => self.session(index, &session, request),
                        };
                        let input = Input::Peer { session, answer };
                        inputs.extend(self.delayed(self.peer_answers_take, index, input));
                    }
                    Effect::Lock { effect: election::Effect::Send(_), .. } if self.is_silent => {}
                    Effect::Lock { lock, effect: election::Effect::Send(request) } => {
                        let answer = self.lock(lock, request);
                        inputs.push(Input::Lock { lock, answer });
                    }
                    Effect::ListSessions { .. } => {
                        self.requests.listings += 1;
                        let seen = self.sessions.iter().filter(|(id, _)| !self.is_hidden(index, id));
                        let spelled = |version: &Version| match self.spells_otherwise {
                            true => Version::new(format!("W/{version}")),
                            false => version.clone(),
                        };
                        let version = |of: &Version| (!self.lists_names_alone).then(|| spelled(of));
                        let listed = seen.map(|(id, found)| (id.clone(), version(&found.version)));
                        inputs.push(Input::Sessions(Ok(Page::only(listed.collect()))));
                    }
                    Effect::ListLocks { from } => {
                        self.requests.listings += 1;
                        let page = Input::Locks(self.page(from));
                        inputs.extend(self.delayed(self.pages_take, index, page));
                    }
                    Effect::Lock { lock, effect: election::Effect::Stop { .. } } if !works_on => {
                        inputs.push(Input::WorkEnded { lock, end: WorkEnd::Complete });
                    }
                    Effect::Lock { lock, effect: election::Effect::Finished(_) } if self.members[index].campaigns => {
                        inputs.push(Input::Compete {
                            lock,
                            stand_back: Duration::ZERO,
                            ends_with_work: false,
                            job: None,
                            one_attempt: false,
                        });
                    }
                    Effect::Fact(fact) => self.members[index].facts.push(fact),
                    _ => {}
                }
            }
        }
    }

    /// Returns an answer that takes no time, and sends any other in flight.
    fn delayed(&mut self, takes: Duration, index: usize, answer: Input) -> Option<Input> {
        if takes.is_zero() {
            return Some(answer);
        }
        self.on_their_way.push((self.now + takes, index, answer));
        None
    }

    /// Returns a page of the listing of all locks.
    fn page(&mut self, from: Option<PageToken>) -> Result<Page<LockId>, Failure> {
        self.pages.push(from.clone());
        if self.loses_pages > 0 && (from.is_some() || self.page_size == 0) {
            self.loses_pages -= 1;
            return Err(failure(StoreErrorKind::Ambiguous));
        }
        let from = from.map_or(0, |token| token.as_str().parse().unwrap());
        let mut rest = self.locks.range(LockId(from)..).map(|(id, found)| (*id, Some(found.version.clone())));
        let size = if self.page_size == 0 { usize::MAX } else { self.page_size };
        let listed = rest.by_ref().take(size).collect();
        Ok(Page { listed, next: rest.next().map(|(id, _)| PageToken::new(id.0.to_string())) })
    }

    fn is_hidden(&self, member: usize, id: &SessionId) -> bool {
        self.hidden_from.as_ref().is_some_and(|(from, hidden)| *from == member && hidden == id)
    }

    /// Returns the ID of a member's own session.
    pub(super) fn session_of(&self, index: usize) -> SessionId {
        self.members[index].member.session(self.now).unwrap().0.clone()
    }

    fn lock(&mut self, lock: LockId, request: Request) -> Answer {
        if let Request::Write(write) = &request
            && self.holds_back > 0
        {
            self.holds_back -= 1;
            self.held_back.push((lock, write.clone()));
            // Without the pause, the member would write again at once.
            let retry_after = Some(Duration::from_secs(2));
            let kind = self.held_back_as.unwrap_or(StoreErrorKind::Ambiguous);
            return Answer::Written(Err(Failure { kind, retry_after }));
        }
        let old = if request == Request::Read { self.old_reads.remove(&lock) } else { None };
        let Requests { reads, lock_writes, .. } = &mut self.requests;
        let answer = request_to(&mut self.locks, lock, request, reads, lock_writes);
        match answer {
            Answer::Read(_) if self.is_spoilt => Answer::Read(Err(failure(StoreErrorKind::Unreadable))),
            Answer::Read(_) if self.loses > 0 => {
                self.loses -= 1;
                Answer::Read(Err(failure(StoreErrorKind::Fatal)))
            }
            Answer::Written(_) if self.loses > 0 => {
                self.loses -= 1;
                Answer::Written(Err(failure(StoreErrorKind::Ambiguous)))
            }
            _ => old.map_or(answer, |old| Answer::Read(Ok(Some(old)))),
        }
    }

    /// Lets the writes arrive that were held back.
    pub(super) fn arrive_late(&mut self) {
        for (lock, write) in std::mem::take(&mut self.held_back) {
            self.lock(lock, Request::Write(write));
        }
    }

    fn session(&mut self, member: usize, id: &SessionId, request: Request) -> Answer {
        if request == Request::Read && self.is_hidden(member, id) {
            return Answer::Read(Ok(None));
        }
        let Requests { reads, session_writes, .. } = &mut self.requests;
        let answer = request_to(&mut self.sessions, id.clone(), request, reads, session_writes);
        if let Answer::Written(Ok(_)) = answer {
            self.renewed_at.insert(id.clone(), self.now);
        }
        answer
    }

    /// Lets time pass, from one moment at which a member wakes to the next, in steps of a millisecond at least.
    pub(super) fn pass_exactly(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let alive = self.members.iter().filter(|driven| driven.alive);
            let answers_at = self.on_their_way.iter().map(|(at, ..)| *at);
            let next = alive.filter_map(|driven| driven.member.wake_at()).chain(answers_at).min();
            let Some(next) = next.map(|next| next.max(self.now + Duration::from_millis(1))).filter(|at| *at <= end)
            else {
                self.now = end;
                return;
            };
            self.now = next;
            for (_, index, answer) in self.on_their_way.extract_if(.., |(at, ..)| *at <= next).collect::<Vec<_>>() {
                self.give(index, answer);
            }
            for index in 0..self.members.len() {
                let driven = &self.members[index];
                if driven.alive && driven.member.wake_at().is_some_and(|at| at <= self.now) {
                    self.give(index, Input::Tick);
                }
            }
        }
    }

    /// Lets time pass, in steps of a tenth of a second.
    pub(super) fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds * 10 {
            self.now = self.now + Duration::from_millis(100);
            for index in 0..self.members.len() {
                let driven = &self.members[index];
                if driven.alive && driven.member.wake_at().is_some_and(|at| at <= self.now) {
                    self.give(index, Input::Tick);
                }
            }
        }
    }

    /// Returns the number of locks that a member leads.
    pub(super) fn led_by(&self, index: usize, locks: u32) -> usize {
        self.locks_of(index, locks).len()
    }

    /// Returns the locks that a member leads.
    pub(super) fn locks_of(&self, index: usize, locks: u32) -> Vec<u32> {
        let driven = &self.members[index];
        let leads = |lock: &u32| driven.alive && driven.member.leading(self.now, LockId(*lock)).is_some();
        (0..locks).filter(leads).collect()
    }
}

fn failure(kind: StoreErrorKind) -> Failure {
    Failure { kind, retry_after: None }
}

fn request_to<K: Ord>(
    objects: &mut BTreeMap<K, VersionedRecord>,
    key: K,
    request: Request,
    reads: &mut usize,
    writes: &mut usize,
) -> Answer {
    match request {
        Request::Read => {
            *reads += 1;
            Answer::Read(Ok(objects.get(&key).cloned()))
        }
        Request::Write(Write { record, expected, .. }) => {
            *writes += 1;
            if objects.get(&key).map(|found| &found.version) != expected.as_ref() {
                return Answer::Written(Err(failure(StoreErrorKind::Conflict)));
            }
            let version = Version::new(record.write_id.clone().unwrap());
            objects.insert(key, stored(&record, &version));
            Answer::Written(Ok(version))
        }
    }
}

/// Returns a record as it is read after it was written.
fn stored(record: &LeaderElectionRecord, version: &Version) -> VersionedRecord {
    let longest = leaderelection::lock::DEFAULT_MAX_LEASE_DURATION;
    let read = leaderelection::sessions::machine::read_record(&record.to_json(), longest).unwrap();
    VersionedRecord::new(read, version.clone())
}
