//! The calls of processes, and their ends.

use std::iter::from_fn;
use std::sync::Arc;

use leaderelection::election::{Answer, Failure, Input, Purpose, Request, Write};
use leaderelection::lock::Stranger;
use leaderelection::majority::parts::Looks;
use leaderelection::{StoreErrorKind, VersionedRecord};

use super::setup::Setup;
use super::world::{Call, Node, Rest, Violation, World};
use super::write::{Put, Writing};
use crate::kit::Late;

/// The answer to a request that fails with an unknown outcome.
const UNKNOWN: Failure = Failure { kind: StoreErrorKind::Ambiguous, retry_after: None };

impl World {
    /// Begins a call. The requests that the last one has left to the background may still land.
    pub(super) fn send(&mut self, index: usize, request: Request) {
        let rest = self.nodes[index].rest.take();
        self.leave(index, rest.into_iter().flat_map(|rest| rest.puts));
        let Node { phase, view, call, .. } = &mut self.nodes[index];
        let Request::Write(Write { record, expected, purpose, .. }) = request else {
            *call = Some(Call::Look(Looks::new(), view.begin_look()));
            return self.finish_look(index);
        };
        let writing = if phase.is_joint() {
            Writing::Joint(view.plan(&record, expected.as_ref()).expect("a version of the view"))
        } else {
            Writing::alone(record, expected)
        };
        *call = Some(Call::Write(purpose, Box::new(writing), Vec::new()));
        self.go_on(index, None);
    }

    /// Lets writes of a process land at some later moment, or never.
    fn leave(&mut self, index: usize, puts: impl IntoIterator<Item = Put>) {
        let parts = self.nodes[index].phase.parts;
        self.late.extend(puts.into_iter().map(|put| Late { sender: None, about: parts[put.part], request: put }));
    }

    /// Gives up the requests of a process to a lock that does not answer.
    pub(super) fn drop_gone(&mut self, index: usize) {
        let Node { phase, call, rest, .. } = &mut self.nodes[index];
        let is_here = |part: usize| Some(phase.parts[part]) != self.gone;
        match call {
            Some(Call::Look(..)) => self.finish_look(index),
            Some(Call::Write(..)) => self.go_on(index, None),
            Some(Call::Return(puts, _)) => {
                puts.retain(|put| is_here(put.part));
                self.finish_return(index);
            }
            None => {
                if let Some(Rest { puts, reads, .. }) = rest {
                    puts.retain(|put| is_here(put.part));
                    reads.retain(|part| is_here(*part));
                }
                self.finish_rest(index);
            }
        }
    }

    /// The parts to one of which the next request of a process goes.
    pub(super) fn next_parts(&self, index: usize) -> Vec<usize> {
        let Node { phase, call, rest, .. } = &self.nodes[index];
        let of = |puts: &[Put]| puts.iter().map(|put| put.part).collect();
        match (call, rest) {
            (Some(Call::Look(looks, _)), _) => {
                let is_left = |part: &usize| !looks.contains_key(part) && Some(phase.parts[*part]) != self.gone;
                (0..phase.parts.len()).filter(is_left).collect()
            }
            (Some(Call::Write(_, _, sent)), _) => of(sent),
            (Some(Call::Return(puts, _)), _) => of(&puts[..1]),
            (None, Some(Rest { puts, reads, .. })) => puts.iter().map(|put| put.part).chain(reads.clone()).collect(),
            (None, None) => Vec::new(),
        }
    }

    /// The lock to which a process sends a write next, and the write.
    pub(super) fn next_put(&self, index: usize) -> Option<(usize, Put)> {
        let Node { phase, call, rest, .. } = &self.nodes[index];
        match (call, rest) {
            (Some(Call::Write(_, _, puts) | Call::Return(puts, _)), _) | (None, Some(Rest { puts, .. })) => {
                puts.first().map(|put| (phase.parts[put.part], put.clone()))
            }
            (Some(Call::Look(..)), _) | (None, None) => None,
        }
    }

    /// Carries out a request of a process to one of the locks.
    pub(super) fn step(&mut self, setup: &Setup, index: usize, part: usize) {
        let lock = self.nodes[index].phase.parts[part];
        let found = self.locks[lock].as_ref().map(|stored| stored.shown(self.now));
        if let Node { view, call: Some(Call::Look(looks, awaited)), .. } = &mut self.nodes[index] {
            looks.insert(part, found);
            awaited.remove(&part);
            view.has_answered(part);
            return self.finish_look(index);
        }
        let Some(put) = self.take_put(index, part) else {
            let Node { view, rest, .. } = &mut self.nodes[index];
            if let Some(Rest { record, reads, .. }) = rest {
                reads.retain(|read| *read != part);
                view.read_late(record, part, found.as_ref());
            }
            return self.finish_rest(index);
        };
        let is_refused = setup.is_refused && index == 0 && lock == 1;
        let version = if is_refused { None } else { self.put(setup, lock, &put) };
        let refusal = if is_refused { StoreErrorKind::Fatal } else { StoreErrorKind::Conflict };
        let Node { view, call, rest, .. } = &mut self.nodes[index];
        match (call, rest) {
            (Some(Call::Write(_, plan, _)), _) => {
                let has_landed = plan.answered(part, version.ok_or(refusal));
                self.go_on(index, has_landed);
            }
            (Some(_), _) => self.finish_return(index),
            (None, rest) => {
                if let (Some(Rest { record, .. }), Some(version)) = (rest, version) {
                    view.wrote_late(record, part, version);
                }
                self.finish_rest(index);
            }
        }
    }

    /// Takes the write of a part off a process's requests.
    fn take_put(&mut self, index: usize, part: usize) -> Option<Put> {
        let Node { call, rest, .. } = &mut self.nodes[index];
        let puts = match (call, rest) {
            (Some(Call::Write(_, _, puts) | Call::Return(puts, _)), _) | (None, Some(Rest { puts, .. })) => puts,
            (Some(Call::Look(..)), _) | (None, None) => return None,
        };
        let at = puts.iter().position(|put| put.part == part)?;
        Some(puts.remove(at))
    }

    /// Lets the next request of a process fail with an unknown outcome.
    pub(super) fn fail(&mut self, index: usize) {
        self.disturbed();
        if let Some(Call::Look(..)) = &self.nodes[index].call {
            self.nodes[index].call = None;
            return self.hand(index, Input::Answer(Answer::Read(Err(UNKNOWN))));
        }
        let Some(part) = self.next_parts(index).first().copied() else { return };
        let put = self.take_put(index, part);
        let Node { call, rest, .. } = &mut self.nodes[index];
        match (call, rest) {
            (Some(Call::Write(_, plan, _)), _) => {
                let has_landed = plan.answered(part, Err(UNKNOWN.kind));
                self.go_on(index, has_landed);
            }
            (Some(_), _) => self.finish_return(index),
            (None, rest) => {
                if let (Some(Rest { reads, .. }), None) = (rest, put) {
                    reads.retain(|read| *read != part);
                }
                self.finish_rest(index);
            }
        }
    }

    /// Shows what the locks have answered, if the process needs no further answer.
    fn finish_look(&mut self, index: usize) {
        let Node { phase, view, call, .. } = &mut self.nodes[index];
        let Some(Call::Look(looks, awaited)) = call else { return };
        let is_here = |part: usize| Some(phase.parts[part]) != self.gone;
        let are_more_awaited = awaited.iter().any(|part| is_here(*part));
        let is_strange = |found: &VersionedRecord| Stranger::of(&found.record, None).is_some();
        let shown = match phase.is_joint() {
            true if !view.is_enough(looks, are_more_awaited) => return,
            true => view.look(looks).map(|(shown, _)| shown).map_err(|error| error.kind()),
            false if looks.is_empty() => return,
            false if looks.values().flatten().any(is_strange) => Err(StoreErrorKind::Unreadable),
            false => Ok(looks.remove(&0).flatten()),
        };
        // The answers that the look does not need come before the next call.
        view.end_look(awaited);
        (0..phase.parts.len()).filter(|part| is_here(*part)).for_each(|part| view.has_answered(part));
        *call = None;
        self.hand(index, Input::Answer(Answer::Read(shown.map_err(|kind| Failure { kind, retry_after: None }))));
    }

    /// Sends what is due of a write, and ends it when it has landed in enough locks, or cannot land in enough any more.
    fn go_on(&mut self, index: usize, mut has_landed: Option<bool>) {
        let Node { phase, view, call, rest, .. } = &mut self.nodes[index];
        let Some(Call::Write(purpose, writing, sent)) = call else { return };
        while has_landed.is_none() {
            sent.extend(from_fn(|| writing.send()));
            has_landed = match sent.iter().position(|put| Some(phase.parts[put.part]) == self.gone) {
                Some(at) => writing.answered(sent.remove(at).part, Err(UNKNOWN.kind)),
                None if sent.is_empty() => Some(false),
                None => return,
            };
        }
        if let Some(version) = writing.wrote(view) {
            let (more, reads) = writing.rest();
            let puts = sent.drain(..).chain(more).collect();
            *rest = Some(Rest { record: Arc::clone(writing.record()), puts, reads });
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

    fn finish_rest(&mut self, index: usize) {
        self.nodes[index].rest.take_if(|rest| rest.puts.is_empty() && rest.reads.is_empty());
    }
}
