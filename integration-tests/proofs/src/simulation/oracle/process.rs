//! The oracle's knowledge about one process.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leaderelection::clock::{LocalInstant, SLICE};
use leaderelection::{LeaderHandle, Leadership};

use crate::phase::Phase;
use crate::simulation::clock::{NodeClock, TrueTime};
use crate::simulation::names::{RequestId, Shown};
use crate::simulation::timings::Timings;

/// More requests than a leader can send between a write and its renew deadline.
const REMEMBERED: usize = 128;

/// The greatest delay of a timer, for every wait.
pub(super) const GRAIN: Duration = Duration::from_millis(5);

/// A process at its start.
#[derive(Debug)]
pub(crate) struct Newcomer {
    pub(crate) node: usize,
    /// The locks that the process uses in a move; none without one.
    pub(crate) locks: Phase,
    pub(crate) identity: String,
    /// The timings; after other timings were set, the times of both that make a check the least strict.
    pub(crate) timings: Timings,
    pub(crate) twin: bool,
    /// The process asks for the lease of a leader of a worse rank.
    pub(crate) takes_back: bool,
    /// The process competes again by itself, and nobody else calls its elector.
    pub(crate) campaigns: bool,
    pub(crate) clock: NodeClock,
    pub(crate) handle: LeaderHandle,
    /// The arguments of `on_new_leader`. Another thread adds them, so they are not part of the history.
    pub(crate) calls: Arc<Mutex<Vec<String>>>,
}

/// A process, and what was seen of it.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) is: Newcomer,
    pub(super) seen: Seen,
}

impl Deref for Watched {
    type Target = Newcomer;

    fn deref(&self) -> &Newcomer {
        &self.is
    }
}

/// The observations of a process.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The start of the process or the end of its last term, and a lease more for each read that has failed since.
    pub(super) well_since: LocalInstant,
    /// The start of the process, the end of its last term, or its last read that failed.
    pub(super) unwell_at: LocalInstant,
    /// The requests for the lease, each with the time for which the process had been well.
    pub(super) asks: Vec<(RequestId, Duration)>,
    /// The requests by which the process has released its terms.
    pub(super) releases: Vec<RequestId>,
    /// The last time at which other timings were set.
    pub(super) reconfigured_at: Option<LocalInstant>,
    pub(super) open: Option<OpenTerm>,
    pub(super) past: Vec<Leadership>,
    /// The process was cancelled, so its terms end without a fault.
    pub(super) cancelled: bool,
    pub(super) starts: u32,
    pub(super) stops: u32,
    pub(super) works: u32,
    pub(super) committed: Option<Committed>,
    /// The term that the process gave away to a named candidate, and the moment.
    pub(super) gave_way: Option<(u64, TrueTime)>,
    /// The holders in the answers to the process, without repetitions; empty for none.
    pub(super) holders: Vec<String>,
    /// The answer to the last read of the process.
    pub(super) read: Shown,
    /// The time before which the store asked for no request.
    pub(super) silent_until: Option<LocalInstant>,
    /// The latest moment until which the process may keep such a pause, whichever of its timings it has.
    pub(super) may_wait_until: Option<LocalInstant>,
    /// A request was sent before that time, and none has been answered since without an error.
    pub(super) has_insisted: bool,
    /// The term whose work is complete, and `true` if the term was valid then.
    pub(super) complete: Option<(u64, bool)>,
    /// The valid term whose work has failed, and the moment, until the process begins another.
    pub(super) failed: Option<(u64, LocalInstant)>,
    /// The time at which the second caller of the elector was cancelled, until its call returns.
    pub(super) caller_cancelled: Option<TrueTime>,
    /// The answer to the last read, if the process has written nothing since.
    pub(super) known: Option<Shown>,
    /// The moment at which the last read was sent.
    pub(super) asked_at: TrueTime,
    /// The release that the last read has shown to a candidate that is to take the lock: since when enough locks show it.
    pub(super) may_take_since: Option<TrueTime>,
    /// The last read, if nothing has disturbed the process since.
    pub(super) last_read: Option<CandidateRead>,
    /// The moment by which a candidate that follows reads again, if nothing has disturbed it.
    pub(super) reads_by: Option<LocalInstant>,
    tried: VecDeque<Tried>,
    went_on_at: Option<TrueTime>,
    /// The time until which the elector may not have noticed a stop of its process.
    unaware_until: Option<LocalInstant>,
}

/// The last write of a term that was committed, whether its elector knows that or not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Committed {
    pub(super) token: u64,
    pub(super) sent: LocalInstant,
    pub(super) lease: Duration,
    pub(super) deadline: Duration,
}

/// A term, as last observed.
#[derive(Debug)]
pub(super) struct OpenTerm {
    pub(super) leadership: Leadership,
    pub(super) valid_until: LocalInstant,
    /// The process itself ended the term.
    pub(super) given_up: bool,
}

/// A read of a candidate, and the last message that the candidate got since.
#[derive(Clone, Copy, Debug)]
pub(super) struct CandidateRead {
    pub(super) at: LocalInstant,
    /// The read showed another state of the object than the read before.
    pub(super) is_news: bool,
    pub(super) reported_at: Option<LocalInstant>,
}

#[derive(Debug)]
pub(super) struct Tried {
    request: RequestId,
    sent: LocalInstant,
    /// The answer arrived in time, was true, and was no conflict.
    good: bool,
    told_to_wait: bool,
    /// The answer showed a state that the object did not have.
    pub(super) deceived: bool,
}

impl Watched {
    pub(super) fn remember_request(&mut self, now: TrueTime, request: RequestId) {
        if self.seen.tried.len() == REMEMBERED {
            self.seen.tried.pop_front();
        }
        let sent = self.clock.local_at(now);
        self.seen.tried.push_back(Tried { request, sent, good: false, told_to_wait: false, deceived: false });
    }

    pub(super) fn tried(&mut self, request: RequestId) -> Option<&mut Tried> {
        self.seen.tried.iter_mut().find(|tried| tried.request == request)
    }

    pub(super) fn request_answered(&mut self, now: TrueTime, request: RequestId, good: bool, told_to_wait: bool) {
        let (now, timeout) = (self.clock.local_at(now), self.timings.timeout);
        if let Some(tried) = self.tried(request) {
            tried.good = good && now < tried.sent + timeout;
            tried.told_to_wait |= told_to_wait;
        }
    }

    /// Returns `true` if a request since `since` was shown a state that the object did not have.
    pub(super) fn was_deceived_since(&self, since: LocalInstant) -> bool {
        self.seen.tried.iter().any(|tried| tried.sent >= since && tried.deceived)
    }

    /// Returns the number of failed requests since `since`, and `true` if an answer to one of them, or before, asked to wait.
    pub(super) fn trouble_since(&self, since: LocalInstant) -> (u32, bool) {
        let wrong = || self.seen.tried.iter().filter(|tried| tried.sent >= since && !tried.good);
        let told_to_wait = self.seen.may_wait_until.is_some_and(|until| until > since);
        let told_to_wait = told_to_wait || wrong().any(|tried| tried.told_to_wait);
        (u32::try_from(wrong().count()).unwrap_or(u32::MAX), told_to_wait)
    }

    /// Returns `true` if a leader has sent its last request so late that no other could follow within its window: one request
    /// lasts as long as it may, and so does the pause after its failure.
    pub(super) fn has_tried_to_the_end(&self, valid_until: LocalInstant) -> bool {
        let Timings { retry, timeout, .. } = self.timings;
        self.seen.tried.back().is_none_or(|last| last.sent + timeout + retry + GRAIN * 4 >= valid_until)
    }

    /// Records the end of a stop. After a stop, the elector reads the clock when it next runs. The process may
    /// run its work before the elector, at the same moment. After a suspend, the timer that wakes the elector, or
    /// tells it of the suspend, continues with its remaining time, at most one slice.
    pub(super) fn went_on(&mut self, now: TrueTime, timers_stood: bool) {
        (self.seen.went_on_at, self.seen.last_read) = (Some(now), None);
        let wakes_after = if timers_stood { SLICE + GRAIN } else { Duration::ZERO };
        // A shorter stop does not make the elector notice an earlier stop sooner.
        self.seen.unaware_until = self.seen.unaware_until.max(Some(self.clock.local_at(now) + wakes_after));
    }

    /// Returns `true` if a stop excuses a late action.
    pub(super) fn may_be_late(&self, now: LocalInstant) -> bool {
        self.seen.unaware_until.is_some_and(|until| now <= until)
    }

    pub(super) fn was_frozen_since(&self, since: LocalInstant) -> bool {
        self.seen.went_on_at.is_some_and(|at| self.clock.local_at(at) >= since)
    }

    /// Returns `true` if the process leads in a term that is still valid.
    pub(super) fn leads(&self) -> bool {
        self.seen.open.as_ref().is_some_and(|open| open.leadership.is_valid())
    }
}
