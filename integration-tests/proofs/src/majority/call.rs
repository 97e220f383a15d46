//! The calls of processes, and their ends.

use std::iter::from_fn;
use std::sync::Arc;

use leaderelection::election::{Answer, Failure, Input, Purpose, Request, Write};
use leaderelection::implement::VersionedRecord;
use leaderelection::lock::IncompatibleRecord;
use leaderelection::majority::parts::PollAnswers;
use leaderelection::{LeaderElectionRecord, StoreErrorKind};

use super::setup::Setup;
use super::world::{Call, Node, Violation, World};
use super::write::{Put, Writing};
use crate::kit::Late;

/// The answer to a request that fails with an unknown outcome.
const UNKNOWN: Failure = Failure { kind: StoreErrorKind::Ambiguous, retry_after: None };

impl World {
    /// Begins a call. All but a renewal of a term end the requests in the background, which may still be committed.
    pub(super) fn send(&mut self, index: usize, request: Request) {
        let Node { phase, view, call, .. } = &mut self.nodes[index];
        let Request::Write(Write { record, expected, purpose, .. }) = request else {
            *call = Some(Call::Poll(PollAnswers::new(), view.begin_poll()));
            self.end_rest(index);
            return self.finish_poll(index);
        };
        let writing = if phase.is_joint() {
            Writing::Joint(view.plan(&record, expected.as_ref()).expect("a version of the view"))
        } else {
            Writing::alone(record, expected)
        };
        let is_renewal = writing.is_renewal();
        *call = Some(Call::Write(purpose, Box::new(writing), Vec::new()));
        if !is_renewal {
            self.end_rest(index);
        }
        self.go_on(index, None);
    }

    /// Waits no longer for the requests in the background.
    fn end_rest(&mut self, index: usize) {
        let background = std::mem::take(&mut self.nodes[index].background);
        self.nodes[index].view.all_have_ended();
        self.leave(index, background.puts);
    }

    /// Lets writes of a process be committed at some later moment, or never.
    fn leave(&mut self, index: usize, puts: impl IntoIterator<Item = Put>) {
        let parts = self.nodes[index].phase.parts;
        self.late.extend(puts.into_iter().map(|put| Late { sender: None, about: parts[put.part], request: put }));
    }

    /// Gives up the requests of a process to a lock that does not answer.
    pub(super) fn drop_gone(&mut self, index: usize) {
        let Node { phase, view, call, background, .. } = &mut self.nodes[index];
        let is_here = |part: usize| Some(phase.parts[part]) != self.gone;
        for part in background.parts().filter(|part| !is_here(*part)) {
            view.has_ended(part);
        }
        background.puts.retain(|put| is_here(put.part));
        background.reads.retain(|(_, part)| is_here(*part));
        match call {
            Some(Call::Poll(..)) => self.finish_poll(index),
            Some(Call::Write(..)) => self.go_on(index, None),
            Some(Call::Return(puts, _)) => {
                puts.retain(|put| is_here(put.part));
                self.finish_return(index);
            }
            None => {}
        }
    }

    /// The parts to one of which the next request of a process goes.
    pub(super) fn next_parts(&self, index: usize) -> Vec<usize> {
        let Node { phase, call, background, .. } = &self.nodes[index];
        let of = |puts: &[Put]| puts.iter().map(|put| put.part).collect();
        let sent: Vec<usize> = match call {
            Some(Call::Poll(polled, _)) => {
                let is_left = |part: &usize| !polled.contains_key(part) && Some(phase.parts[*part]) != self.gone;
                (0..phase.parts.len()).filter(is_left).collect()
            }
            Some(Call::Write(_, _, sent)) => of(sent),
            Some(Call::Return(puts, _)) => of(&puts[..1]),
            None => Vec::new(),
        };
        sent.into_iter().chain(background.parts()).collect()
    }

    /// The lock to which a process sends a write next, and the write.
    pub(super) fn next_put(&self, index: usize) -> Option<(usize, Put)> {
        let Node { phase, call, background, .. } = &self.nodes[index];
        let put = match call {
            Some(Call::Write(_, _, puts) | Call::Return(puts, _)) => puts.first(),
            Some(Call::Poll(..)) => None,
            None => background.puts.first(),
        };
        put.map(|put| (phase.parts[put.part], put.clone()))
    }

    /// Carries out a request of a process to one of the locks.
    pub(super) fn step(&mut self, setup: &Setup, index: usize, part: usize) {
        let lock = self.nodes[index].phase.parts[part];
        let found = self.locks[lock].as_ref().map(|stored| stored.shown(self.now));
        if let Node { view, call: Some(Call::Poll(polled, awaited)), .. } = &mut self.nodes[index] {
            polled.insert(part, found);
            awaited.remove(&part);
            view.has_answered(part);
            return self.finish_poll(index);
        }
        let Some((put, is_rest)) = self.take_put(index, part) else {
            let Node { view, background, .. } = &mut self.nodes[index];
            if let Some(record) = background.take_read(part) {
                view.has_ended(part);
                view.observe_part(&record, part, found.as_ref());
            }
            return;
        };
        let is_refused = setup.is_refused && index == 0 && lock == 1;
        let version = if is_refused { None } else { self.put(setup, lock, &put) };
        let refusal = if is_refused { StoreErrorKind::Fatal } else { StoreErrorKind::Conflict };
        let Node { view, call, .. } = &mut self.nodes[index];
        match call {
            _ if is_rest => {
                view.has_ended(part);
                if let Some(version) = version {
                    let written = VersionedRecord::new(LeaderElectionRecord::clone(&put.record), version);
                    view.observe_part(&put.record, part, Some(&written));
                }
            }
            Some(Call::Write(_, plan, _)) => {
                let is_committed = plan.answered(part, version.ok_or(refusal));
                self.go_on(index, is_committed);
            }
            _ => self.finish_return(index),
        }
    }

    /// Takes the write of a part off a process's requests. Returns `true` beside it if it was in the background.
    fn take_put(&mut self, index: usize, part: usize) -> Option<(Put, bool)> {
        let Node { call, background, .. } = &mut self.nodes[index];
        if let Some(Call::Write(_, _, puts) | Call::Return(puts, _)) = call
            && let Some(at) = puts.iter().position(|put| put.part == part)
        {
            return Some((puts.remove(at), false));
        }
        Some((background.take_put(part)?, true))
    }

    /// Lets the next request of a process fail with an unknown outcome.
    pub(super) fn fail(&mut self, index: usize) {
        self.disturbed();
        if let Some(Call::Poll(..)) = &self.nodes[index].call {
            self.nodes[index].call = None;
            return self.hand(index, Input::Answer(Answer::Read(Err(UNKNOWN))));
        }
        let Some(part) = self.next_parts(index).first().copied() else { return };
        let put = self.take_put(index, part);
        let Node { view, call, background, .. } = &mut self.nodes[index];
        match (call, put) {
            (Some(Call::Write(_, plan, _)), Some((_, false))) => {
                let is_committed = plan.answered(part, Err(UNKNOWN.kind));
                self.go_on(index, is_committed);
            }
            (Some(_), Some((_, false))) => self.finish_return(index),
            _ => {
                background.take_read(part);
                view.has_ended(part);
            }
        }
    }

    /// Shows what the locks have answered, if the process needs no further answer.
    fn finish_poll(&mut self, index: usize) {
        let Node { phase, view, call, .. } = &mut self.nodes[index];
        let Some(Call::Poll(polled, awaited)) = call else { return };
        let is_here = |part: usize| Some(phase.parts[part]) != self.gone;
        let are_more_awaited = awaited.iter().any(|part| is_here(*part));
        let is_strange = |found: &VersionedRecord| IncompatibleRecord::of(&found.record, None).is_some();
        let shown = match phase.is_joint() {
            true if !view.is_enough(polled, are_more_awaited) => return,
            true => view.observe(polled).map(|(shown, _)| shown).map_err(|error| error.kind()),
            false if polled.is_empty() => return,
            false if polled.values().flatten().any(is_strange) => Err(StoreErrorKind::Unreadable),
            false => Ok(polled.remove(&0).flatten()),
        };
        // The answers that the poll does not need come before the next call.
        view.end_poll(awaited);
        (0..phase.parts.len()).filter(|part| is_here(*part)).for_each(|part| view.has_answered(part));
        *call = None;
        self.hand(index, Input::Answer(Answer::Read(shown.map_err(|kind| Failure { kind, retry_after: None }))));
    }

    /// Sends what is due of a write, and ends it when it is committed in enough locks, or can no longer be committed in
    /// enough.
    fn go_on(&mut self, index: usize, mut is_committed: Option<bool>) {
        let Node { phase, view, call, background, .. } = &mut self.nodes[index];
        let Some(Call::Write(purpose, writing, sent)) = call else { return };
        while is_committed.is_none() {
            sent.extend(from_fn(|| writing.send()));
            is_committed = match sent.iter().position(|put| Some(phase.parts[put.part]) == self.gone) {
                Some(at) => writing.answered(sent.remove(at).part, Err(UNKNOWN.kind)),
                None if sent.is_empty() => Some(false),
                None => return,
            };
        }
        if let Some(version) = writing.wrote(view) {
            let (puts, reads) = writing.unsent(view, std::mem::take(sent));
            background.puts.extend(puts);
            background.reads.extend(reads.into_iter().map(|part| (Arc::clone(writing.record()), part)));
            *call = None;
            self.drop_gone(index);
            return self.hand(index, Input::Answer(Answer::Written(Ok(version))));
        }
        let (kind, puts) = writing.failed(view);
        let is_lost = matches!(kind, StoreErrorKind::Conflict | StoreErrorKind::Fatal);
        if puts.is_empty() && is_lost && writing.is_half() && *purpose == Purpose::Acquire {
            self.violation.get_or_insert(Violation::KeptHalf);
        }
        let open = std::mem::take(sent);
        *call = Some(Call::Return(puts, kind));
        self.leave(index, open);
        self.finish_return(index);
    }

    fn finish_return(&mut self, index: usize) {
        if let Some(Call::Return(puts, kind)) = &self.nodes[index].call
            && puts.is_empty()
        {
            let failure = Failure { kind: *kind, retry_after: None };
            self.nodes[index].call = None;
            self.hand(index, Input::Answer(Answer::Written(Err(failure))));
        }
    }
}
