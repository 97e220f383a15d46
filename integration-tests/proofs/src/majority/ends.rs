//! The ends of calls.

use std::sync::Arc;

use leaderelection::election::{Answer, Failure, Input, Purpose};
use leaderelection::lock::Stranger;
use leaderelection::majority::plan::Put;
use leaderelection::{StoreErrorKind, VersionedRecord};

use super::call::{Call, Rest};
use super::promise::Violation;
use super::world::{Node, World};

impl World {
    /// Shows what the locks have answered, if the process needs no further answer.
    pub(super) fn finish_look(&mut self, index: usize) {
        let gone = self.gone;
        let Node { phase, view, call, .. } = &mut self.nodes[index];
        let Some(Call::Look(looks)) = call else { return };
        let mut left =
            phase.parts.iter().filter(|part| Some(**part) != gone && !looks.contains_key(&phase.place(**part)));
        if looks.len() < phase.needs || left.next().is_some() && !view.is_decided(looks) {
            return;
        }
        let failure = |kind| Err(Failure { kind, retry_after: None });
        let is_strange = |found: &VersionedRecord| Stranger::of(&found.record, None).is_some();
        let answer = match phase.is_joint() {
            true if view.stranger(looks).is_some() => failure(StoreErrorKind::Unreadable),
            true if view.is_in_doubt(looks) => failure(StoreErrorKind::Ambiguous),
            true => Ok(view.show(looks).0),
            false if looks.values().flatten().any(is_strange) => failure(StoreErrorKind::Unreadable),
            false => Ok(looks.remove(&0).flatten()),
        };
        *call = None;
        self.hand(index, Input::Answer(Answer::Read(answer)));
    }

    /// Ends a write that has landed in enough locks, or cannot land in enough any more.
    pub(super) fn finish_write(&mut self, index: usize) {
        let Node { phase, view, call, rest, .. } = &mut self.nodes[index];
        let Some(Call::Write { purpose, record, left, written, error }) = call else { return };
        if written.len() + left.puts.len() >= phase.needs && written.len() < phase.needs {
            return;
        }
        if written.len() >= phase.needs {
            if record.is_released() && !left.puts.is_empty() {
                return;
            }
            let version = if phase.is_joint() { view.wrote(record, written) } else { written[&0].clone() };
            *rest = Some(Rest { record: Arc::clone(record), left: left.clone() }).filter(|rest| !rest.left.is_done());
            *call = None;
            return self.hand(index, Input::Answer(Answer::Written(Ok(version))));
        }
        let kind = match error {
            // Some of the write may be in a lock.
            Some(StoreErrorKind::Conflict) => StoreErrorKind::Conflict,
            Some(StoreErrorKind::Fatal) if left.puts.is_empty() => StoreErrorKind::Fatal,
            _ => StoreErrorKind::Ambiguous,
        };
        let returned = if written.is_empty() { None } else { view.gives_back(record, kind) };
        let is_lost = matches!(kind, StoreErrorKind::Conflict | StoreErrorKind::Fatal);
        if returned.is_none() && is_lost && !written.is_empty() && *purpose == Purpose::Acquire {
            self.violation.get_or_insert(Violation::KeptHalf);
        }
        let open: Vec<_> = if left.in_turn { Vec::new() } else { left.puts.drain(..).collect() };
        let puts = returned.map(Arc::new).into_iter().flat_map(|record| {
            let expected = written.iter().rev().map(|(place, version)| (phase.parts[*place], Some(version.clone())));
            expected.map(move |(part, expected)| Put { part, record: Arc::clone(&record), expected })
        });
        *call = Some(Call::Return(puts.collect(), kind));
        self.leave(open);
        self.finish_return(index);
    }

    pub(super) fn finish_return(&mut self, index: usize) {
        if let Some(Call::Return(puts, kind)) = &self.nodes[index].call
            && puts.is_empty()
        {
            let kind = *kind;
            self.nodes[index].call = None;
            self.hand(index, Input::Answer(Answer::Written(Err(Failure { kind, retry_after: None }))));
        }
    }

    /// Lets the next request of a process fail with an unknown outcome.
    pub(super) fn fail(&mut self, index: usize) {
        self.disturbed();
        let next = self.next_parts(index).first().copied();
        match &mut self.nodes[index].call {
            None => {
                if let (Some(rest), Some(part)) = (&mut self.nodes[index].rest, next) {
                    rest.left.forget(part);
                }
                self.nodes[index].rest.take_if(|rest| rest.left.is_done());
            }
            Some(Call::Look(_)) => {
                self.nodes[index].call = None;
                let failure = Failure { kind: StoreErrorKind::Ambiguous, retry_after: None };
                self.hand(index, Input::Answer(Answer::Read(Err(failure))));
            }
            Some(Call::Write { left, error, .. }) => {
                next.iter().for_each(|part| left.forget(*part));
                *error = Some(StoreErrorKind::Ambiguous);
                self.finish_write(index);
            }
            Some(Call::Return(puts, _)) => {
                puts.remove(0);
                self.finish_return(index);
            }
        }
    }

    /// The locks to one of which the next request of a process goes.
    pub(super) fn next_parts(&self, index: usize) -> Vec<usize> {
        let Node { phase, call, rest, .. } = &self.nodes[index];
        let is_here = |part: &usize| Some(*part) != self.gone;
        match (call, rest) {
            (Some(Call::Look(looks)), _) => {
                let is_left = |part: &usize| !looks.contains_key(&phase.place(*part));
                phase.parts.iter().copied().filter(is_left).filter(is_here).collect()
            }
            (Some(Call::Write { left, .. }), _) => {
                let most = if left.in_turn { 1 } else { left.puts.len() };
                left.puts.iter().take(most).map(|put| put.part).collect()
            }
            (Some(Call::Return(puts, _)), _) => puts.iter().take(1).map(|put| put.part).collect(),
            (None, Some(Rest { left, .. })) => {
                left.puts.iter().map(|put| put.part).chain(left.reads.iter().copied()).collect()
            }
            (None, None) => Vec::new(),
        }
    }

    /// The write that a process sends next.
    pub(super) fn put_of(&self, index: usize) -> Option<Put> {
        match (&self.nodes[index].call, &self.nodes[index].rest) {
            (Some(Call::Look(_)), _) | (None, None) => None,
            (Some(Call::Write { left, .. }), _) | (None, Some(Rest { left, .. })) => left.puts.front().cloned(),
            (Some(Call::Return(puts, _)), _) => puts.first().cloned(),
        }
    }
}
