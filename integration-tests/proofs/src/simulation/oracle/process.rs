//! The oracle's knowledge about one process.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leaderelection::clock::{LocalInstant, SLICE};
use leaderelection::migration::view::Half;
use leaderelection::{LeaderHandle, Leadership};

use super::failures::Failed;
use super::peers::Looked;
use super::terms::GRAIN;
use crate::simulation::clock::{NodeClock, TrueTime};
use crate::simulation::scenario::Timings;
use crate::simulation::timeline::{RequestId, Shown};

/// More requests than a leader can send between a write and its renew deadline.
const REMEMBERED: usize = 128;

/// A process at its start.
#[derive(Debug)]
pub(in crate::simulation) struct Newcomer {
    pub(in crate::simulation) node: usize,
    /// The locks of the two that the process uses in a move.
    pub(in crate::simulation) locks: &'static [Half],
    pub(in crate::simulation) identity: String,
    pub(in crate::simulation) timings: Timings,
    pub(in crate::simulation) twin: bool,
    /// The process asks for the lease of a leader of a worse rank.
    pub(in crate::simulation) takes_back: bool,
    /// The process competes again by itself, and nobody else calls its elector.
    pub(in crate::simulation) campaigns: bool,
    pub(in crate::simulation) clock: NodeClock,
    pub(in crate::simulation) handle: LeaderHandle,
    /// The arguments of `on_new_leader`. Another thread adds them, so they are not part of the history.
    pub(in crate::simulation) calls: Arc<Mutex<Vec<String>>>,
}

#[derive(Debug)]
pub(in crate::simulation) struct Watched {
    pub(super) node: usize,
    /// The locks of the two that the process uses in a move; none without one.
    pub(super) locks: &'static [Half],
    pub(super) identity: String,
    pub(super) takes_back: bool,
    /// The start of the process or the end of its last term, and a lease more for each read that has failed since.
    pub(super) well_since: LocalInstant,
    /// The start of the process, the end of its last term, or its last read that failed.
    pub(super) unwell_at: LocalInstant,
    /// The requests for the lease, each with the time for which the process had been well.
    pub(super) asks: Vec<(RequestId, Duration)>,
    /// The requests by which the process has released its terms.
    pub(super) releases: Vec<RequestId>,
    pub(super) campaigns: bool,
    /// The timings; after other timings were set, the times of both that make a check the least strict.
    pub(super) timings: Timings,
    /// The last time at which other timings were set.
    pub(super) reconfigured_at: Option<LocalInstant>,
    pub(super) clock: NodeClock,
    pub(super) handle: LeaderHandle,
    pub(super) open: Option<OpenTerm>,
    pub(super) past: Vec<Leadership>,
    /// The process was cancelled, so its terms end without a fault.
    pub(super) cancelled: bool,
    pub(super) starts: u32,
    pub(super) stops: u32,
    pub(super) works: u32,
    pub(super) landed: Option<Landed>,
    /// The term that the process gave away to a named candidate, and the moment.
    pub(super) gave_way: Option<(u64, TrueTime)>,
    /// The holders in the answers to the process, without repetitions; empty for none.
    pub(super) holders: Vec<String>,
    pub(super) calls: Arc<Mutex<Vec<String>>>,
    /// The answer to the last read of the process.
    pub(super) read: Shown,
    /// The time before which the store asked for no request.
    pub(super) silent_until: Option<LocalInstant>,
    /// The term whose work is complete, and `true` if the term was valid then.
    pub(super) complete: Option<(u64, bool)>,
    /// The term whose work has failed, until the process begins another.
    pub(super) failed: Option<Failed>,
    /// The time at which the second caller of the elector was cancelled, until its call returns.
    pub(super) caller_cancelled: Option<TrueTime>,
    /// The answer to the last read, if the process has written nothing since.
    pub(super) known: Option<Shown>,
    /// The last read, if nothing has disturbed the process since.
    pub(super) looked: Option<Looked>,
    /// The moment by which a candidate that follows reads again, if nothing has disturbed it.
    pub(super) reads_by: Option<LocalInstant>,
    tried: VecDeque<Tried>,
    went_on_at: Option<TrueTime>,
    /// The time until which the elector may not have noticed a stop of its process.
    unaware_until: Option<LocalInstant>,
}

/// The last write of a term that landed, whether its elector knows that or not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Landed {
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

#[derive(Debug)]
struct Tried {
    request: RequestId,
    sent: LocalInstant,
    /// The answer arrived in time, was true, and was no conflict.
    good: bool,
    told_to_wait: bool,
    /// The answer showed a state that the object did not have.
    deceived: bool,
}

impl From<Newcomer> for Watched {
    fn from(newcomer: Newcomer) -> Self {
        let Newcomer { node, locks, identity, takes_back, campaigns, timings, clock, handle, calls, .. } = newcomer;
        Self {
            node,
            locks,
            identity,
            takes_back,
            well_since: LocalInstant::default(),
            unwell_at: LocalInstant::default(),
            asks: Vec::new(),
            releases: Vec::new(),
            campaigns,
            timings,
            reconfigured_at: None,
            clock,
            handle,
            open: None,
            past: Vec::new(),
            cancelled: false,
            starts: 0,
            stops: 0,
            works: 0,
            landed: None,
            gave_way: None,
            holders: Vec::new(),
            calls,
            read: [0; 2],
            silent_until: None,
            complete: None,
            failed: None,
            caller_cancelled: None,
            known: None,
            looked: None,
            reads_by: None,
            tried: VecDeque::new(),
            went_on_at: None,
            unaware_until: None,
        }
    }
}

impl Watched {
    pub(super) fn remember_request(&mut self, now: TrueTime, request: RequestId) {
        if self.tried.len() == REMEMBERED {
            self.tried.pop_front();
        }
        let sent = self.clock.local_at(now);
        self.tried.push_back(Tried { request, sent, good: false, told_to_wait: false, deceived: false });
    }

    pub(super) fn request_answered(&mut self, now: TrueTime, request: RequestId, good: bool, told_to_wait: bool) {
        let now = self.clock.local_at(now);
        if let Some(tried) = self.tried.iter_mut().find(|tried| tried.request == request) {
            tried.good = good && now < tried.sent + self.timings.timeout;
            tried.told_to_wait |= told_to_wait;
        }
    }

    pub(super) fn request_is_deceived(&mut self, request: RequestId) {
        if let Some(tried) = self.tried.iter_mut().find(|tried| tried.request == request) {
            tried.deceived = true;
        }
    }

    /// Returns `true` if a request since `since` was shown a state that the object did not have.
    pub(super) fn was_deceived_since(&self, since: LocalInstant) -> bool {
        self.tried.iter().any(|tried| tried.sent >= since && tried.deceived)
    }

    /// Returns the number of failed requests since `since`, and `true` if an answer asked to wait.
    pub(super) fn trouble_since(&self, since: LocalInstant) -> (u32, bool) {
        let wrong = || self.tried.iter().filter(|tried| tried.sent >= since && !tried.good);
        (u32::try_from(wrong().count()).unwrap_or(u32::MAX), wrong().any(|tried| tried.told_to_wait))
    }

    /// Records the end of a stop. After a stop, the elector reads the clock when it next runs. The process may
    /// run its work before the elector, at the same moment. After a suspend, the timer that wakes the elector, or
    /// tells it of the suspend, continues with its remaining time, at most one slice.
    pub(super) fn went_on(&mut self, now: TrueTime, timers_stood: bool) {
        (self.went_on_at, self.looked) = (Some(now), None);
        let wakes_after = if timers_stood { SLICE + GRAIN } else { Duration::ZERO };
        // A shorter stop does not make the elector notice an earlier stop sooner.
        self.unaware_until = self.unaware_until.max(Some(self.clock.local_at(now) + wakes_after));
    }

    /// Returns `true` if a stop excuses a late action.
    pub(super) fn may_be_late(&self, now: LocalInstant) -> bool {
        self.unaware_until.is_some_and(|until| now <= until)
    }

    pub(super) fn was_frozen_since(&self, since: LocalInstant) -> bool {
        self.went_on_at.is_some_and(|at| self.clock.local_at(at) >= since)
    }

    /// Records the holder in an answer that reached the elector; empty for none.
    pub(super) fn heard(&mut self, holder: &str) {
        if self.holders.last().map(String::as_str) != Some(holder) {
            self.holders.push(holder.to_owned());
        }
    }
}
