//! The safety kernel beside an election, for the proofs: every request and every window of the election must be one that the
//! kernel permits.
//!
//! The kernel takes the place of the election's own phases step by step. Until it has, this shows that both decide alike.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leaderelection_protocol::lease::{self, Lease, Limits, ReadError};
use leaderelection_protocol::record::Versioned;

use super::effect::{Effect, Purpose, Request, Term, Write};
use super::input::Answer;
use super::rules::Rules;
use super::visitor::Visitor;
use crate::clock::LocalInstant;
use crate::lock::job::JobId;
use crate::lock::record::LeaderElectionRecord;
use crate::store::StoreErrorKind;
use crate::term::{EndReason, WorkEnd};

static IS_ON: AtomicBool = AtomicBool::new(false);

/// Compares every election of this process that is created from now on with the kernel. A difference is a panic.
#[cfg(feature = "unstable-election")]
pub fn compare_with_the_kernel() {
    IS_ON.store(true, Ordering::Relaxed);
}

/// The kernel, if this process compares. It is no part of the election's state: it follows from the same inputs.
#[derive(Clone, Debug, Default)]
pub(super) struct Shadow(Option<Box<Beside>>);

#[derive(Clone, Debug)]
struct Beside {
    lease: Lease<LeaderElectionRecord>,
    now: LocalInstant,
}

impl PartialEq for Shadow {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Shadow {}

impl Hash for Shadow {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Shadow {
    pub(super) fn new(rules: &Rules) -> Self {
        let lease = || Lease::new(rules.identity.clone(), limits(rules), rules.reclaim_own_identity);
        let beside = || Box::new(Beside { lease: lease(), now: LocalInstant::default() });
        Self(IS_ON.load(Ordering::Relaxed).then(beside))
    }

    /// Begins a step.
    pub(super) fn step(&mut self, now: LocalInstant) {
        self.then(|beside| {
            beside.now = now;
            beside.lease.tick(now);
        });
    }

    pub(super) fn begin(&mut self, job: Option<&JobId>) {
        self.then(|Beside { lease, now }| lease.begin(*now, job.cloned()));
    }

    pub(super) fn answer(&mut self, answer: &Answer, rules: &Rules) {
        self.then(|Beside { lease, now }| match answer {
            Answer::Read(Ok(found)) => {
                let known_for = rules.certain_age(found.as_ref().and_then(|found| found.age));
                let found =
                    found.clone().map(|found| Versioned { record: Arc::new(found.record), version: found.version });
                lease.read_answered(*now, Ok(found), known_for);
            }
            Answer::Read(Err(failure)) => {
                let is_unreadable = failure.kind == StoreErrorKind::Unreadable;
                let error = if is_unreadable { ReadError::Unreadable } else { ReadError::Failed };
                lease.read_answered(*now, Err(error), Duration::ZERO);
            }
            Answer::Written(answer) => lease.write_answered(*now, answer.as_ref().ok().cloned()),
        });
    }

    pub(super) fn end_term(&mut self, reason: &EndReason) {
        let to = if let EndReason::Transferred { to } = reason { Some(to) } else { None };
        self.then(|Beside { lease, now }| lease.end_term(*now, to.cloned()));
    }

    pub(super) fn work_ended(&mut self, end: WorkEnd) {
        self.then(|Beside { lease, now }| lease.work_ended(*now, end == WorkEnd::Complete));
    }

    pub(super) fn withdraw(&mut self) {
        self.then(|Beside { lease, now }| lease.withdraw(*now));
    }

    pub(super) fn give_up(&mut self) {
        self.then(|Beside { lease, now }| lease.give_up(*now));
    }

    pub(super) fn take_rules(&mut self, rules: &Rules) {
        self.then(|Beside { lease, now }| lease.set_limits(*now, limits(rules)));
    }

    pub(super) fn visit(&mut self, visitor: &mut impl Visitor) {
        self.then(|beside| beside.lease.visit(&mut Adapter(visitor)));
    }

    /// Hands the word of a peer on that has counted.
    pub(super) fn hint(&mut self, write_id: String) {
        self.then(|Beside { lease, now }| lease.hint(*now, write_id));
    }

    /// Compares the effects of this step, and the term that is valid after it, with what the kernel permits.
    pub(super) fn compare<'a>(&mut self, effects: impl Iterator<Item = &'a Effect>, leading: Option<Term>) {
        self.then(|Beside { lease, now }| {
            for effect in effects {
                match effect {
                    Effect::Send(Request::Look) => assert_eq!(lease.may_read(), Ok(()), "{lease:?}"),
                    Effect::Send(Request::Write(write)) => compare_write(*now, write, lease),
                    _ => {}
                }
            }
            while lease.next_event().is_some() {}
            let ours = leading.map(|term| (term.fencing_token, term.sent_at, term.valid_until));
            let permitted = lease.term(*now).map(|term| (term.token(), term.sent_at(), term.valid_until()));
            assert_eq!(ours, permitted, "{lease:?}");
        });
    }

    fn then(&mut self, take: impl FnOnce(&mut Beside)) {
        if let Some(beside) = &mut self.0 {
            take(beside);
        }
    }
}

fn compare_write(now: LocalInstant, write: &Write, lease: &mut Lease<LeaderElectionRecord>) {
    let before = lease.clone();
    let permit = match write.purpose {
        Purpose::Acquire => lease.may_acquire(now),
        Purpose::Renew => lease.may_renew(now),
        Purpose::Release => lease.may_release(now),
        Purpose::Ask => lease.may_request(now),
    };
    let permit = permit.unwrap_or_else(|not_yet| panic!("{write:?} is not permitted: {not_yet:?} {before:?}"));
    let id = write.record.write_id.clone().unwrap_or_default();
    let permitted = permit.write(|| id, LeaderElectionRecord::clone(&write.record));
    let ours = (&*write.record, write.expected.as_ref());
    assert_eq!((&**permitted.record(), permitted.expected()), ours, "{before:?}");
}

fn limits(rules: &Rules) -> Limits {
    Limits { lease_duration: rules.lease_duration, renew_deadline: rules.renew_deadline }
}

struct Adapter<'a, V>(&'a mut V);

impl<V: Visitor> lease::Visitor<LeaderElectionRecord> for Adapter<'_, V> {
    fn timer(&mut self, at: &mut LocalInstant) {
        self.0.timer(at);
    }

    fn moment(&mut self, at: &mut LocalInstant) {
        self.0.moment(at);
    }

    fn may_land(&mut self, id: &String) -> bool {
        self.0.may_land(id)
    }
}
