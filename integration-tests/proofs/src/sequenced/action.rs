//! The steps of the processes, the network and the store.

use bytes::Bytes;
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_sequenced::Content;
use leaderelection_sequenced::steps::{Ask, Next, Number, Place, Poll, Reported, Seen, Write, WriteError};

use super::setup::{Listing, Setup};
use super::world::{Call, Late, Origin, Running, Violation, World};

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Lets an event happen to a process.
    Client(usize, Deed),
    /// Carries out a request for whose answer nobody waits.
    ArriveLate(usize),
}

/// An event that happens to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deed {
    /// The process begins to read.
    Read,
    /// The process begins to write on what it has seen last.
    Write,
    /// The process begins to delete what it has seen last.
    Delete,
    /// The store carries out the request, or reads one key of a listing, and the process gets the answer.
    Step,
    /// The same, and the request is delivered once more later.
    StepTwice,
    /// The request fails without an effect.
    Refuse,
    /// The request fails, and may still arrive.
    Doubt,
    /// The process no longer waits for its call. Its request may still arrive.
    Abandon,
    /// The process begins anew, with nothing that it knows. Its request may still arrive.
    Crash,
}

impl World {
    pub(super) fn possible(&self, setup: &Setup, actions: &mut Vec<Action>) {
        if self.violation.is_some() {
            return;
        }
        for (index, client) in self.clients.iter().enumerate() {
            let mut push = |deed| actions.push(Action::Client(index, deed));
            let Some(running) = &client.running else {
                push(Deed::Read);
                if let Some(seen) = client.seen.as_ref().filter(|_| client.writes < setup.writes[index]) {
                    push(Deed::Write);
                    if setup.deletions && seen.exists() {
                        push(Deed::Delete);
                    }
                }
                continue;
            };
            push(Deed::Step);
            push(Deed::Abandon);
            if setup.crashes {
                push(Deed::Crash);
            }
            if setup.failures {
                push(Deed::Refuse);
                push(Deed::Doubt);
            }
            if setup.duplicates && self.late.len() < setup.late && matches!(running.ask, Ask::Create(..)) {
                push(Deed::StepTwice);
            }
        }
        actions.extend((0..self.late.len()).map(Action::ArriveLate));
    }

    pub(super) fn take(&mut self, setup: &Setup, action: Action) {
        match action {
            Action::ArriveLate(index) => {
                let Late { request, about: origin, .. } = self.late.remove(index);
                // Nobody gets the answer.
                let _ = self.carry_out(&request, origin);
            }
            Action::Client(index, Deed::Read) => {
                let (poll, ask) = Poll::begin(self.clients[index].known.clone());
                self.begin(index, Call::Poll(poll), ask);
            }
            Action::Client(index, deed @ (Deed::Write | Deed::Delete)) => {
                let client = &mut self.clients[index];
                client.writes += 1;
                let body =
                    if deed == Deed::Delete { Bytes::new() } else { vec![index as u8 + 1, client.writes].into() };
                let expected = client.seen.as_ref().filter(|place| place.exists()).map(|place| place.number);
                let (write, ask) = Write::begin(client.known.clone(), expected, body, setup.keep);
                client.known = client.known.take().map(|place| Place { unlisted: u8::MAX - 1, ..place });
                self.begin(index, Call::Write(write, expected), ask);
            }
            Action::Client(index, Deed::Step) => self.step(setup, index),
            Action::Client(index, Deed::StepTwice) => {
                self.leave_behind(setup, index);
                self.step(setup, index);
            }
            Action::Client(index, Deed::Refuse) => self.fail(index, StoreErrorKind::Rejected),
            Action::Client(index, Deed::Doubt) => {
                self.leave_behind(setup, index);
                self.fail(index, StoreErrorKind::Ambiguous);
            }
            Action::Client(index, Deed::Abandon) => {
                self.leave_behind(setup, index);
                self.clients[index].running = None;
            }
            Action::Client(index, Deed::Crash) => {
                self.leave_behind(setup, index);
                let client = &mut self.clients[index];
                (client.running, client.known, client.seen) = (None, None, None);
            }
        }
    }

    fn begin(&mut self, index: usize, call: Call, ask: Ask) {
        let highest_before = if matches!(call, Call::Poll(_)) { self.highest() } else { 0 };
        self.clients[index].running = Some(Running { call, ask, listed: Vec::new(), highest_before });
    }

    fn origin(&self, index: usize) -> Origin {
        (index, self.clients[index].writes)
    }

    /// Leaves a request in flight, if it may have an effect.
    fn leave_behind(&mut self, setup: &Setup, index: usize) {
        let Some(running) = &self.clients[index].running else { return };
        if matches!(running.ask, Ask::Create(..) | Ask::Remove(_)) && self.late.len() < setup.late {
            let sent = Late { sender: Some(index), about: self.origin(index), request: running.ask.clone() };
            self.late.push(sent);
            if self.late.len() > 1 {
                // The order of requests in flight makes no difference.
                self.late.sort_by_key(|sent| (sent.about, format!("{:?}", sent.request)));
            }
        }
    }

    fn step(&mut self, setup: &Setup, index: usize) {
        let origin = self.origin(index);
        let Some(running) = &mut self.clients[index].running else { return };
        let ask = running.ask.clone();
        let answer = match ask {
            Ask::List(after) if setup.listing != Listing::Snapshot => {
                let after = after.map_or(0, Number::get);
                let last = running.listed.last().map(|number| number.get());
                let next = self.objects.keys().find(|key| last.is_none_or(|last| **key > last) && **key > after);
                match next {
                    Some(key) => {
                        running.listed.push(Number::new(*key));
                        return;
                    }
                    None => Ok(Reported::Numbers(std::mem::take(&mut running.listed))),
                }
            }
            ask => self.carry_out(&ask, origin),
        };
        self.answer(index, answer);
    }

    fn fail(&mut self, index: usize, kind: StoreErrorKind) {
        self.answer(index, Err(StoreError::new(kind, "the modelled store failed")));
    }

    /// Carries out a request in one moment.
    fn carry_out(&mut self, ask: &Ask, origin: Origin) -> Result<Reported, StoreError> {
        match ask {
            Ask::List(after) => {
                let numbers = self.objects.keys().map(|key| Number::new(*key)).filter(|number| Some(*number) > *after);
                Ok(Reported::Numbers(numbers.collect()))
            }
            Ask::Read(number) => {
                let content = self.objects.get(&number.get()).map(|object| Content::new(object.content.clone()));
                Ok(Reported::Content(content))
            }
            Ask::Create(number, content) => {
                let is_created = self.create(*number, content, origin);
                is_created.then_some(Reported::Done).ok_or_else(|| StoreError::new(StoreErrorKind::Conflict, "taken"))
            }
            Ask::Remove(number) => {
                self.remove(*number);
                Ok(Reported::Done)
            }
        }
    }

    fn answer(&mut self, index: usize, answer: Result<Reported, StoreError>) {
        let Some(mut running) = self.clients[index].running.take() else { return };
        running.listed.clear();
        let next = match &mut running.call {
            Call::Poll(poll) => match poll.next(answer) {
                Next::Ask(ask) => Some(ask),
                Next::Done(seen) => {
                    self.check_read(index, running.highest_before, seen);
                    None
                }
            },
            Call::Write(write, expected) => match write.next(answer) {
                Next::Ask(ask) => Some(ask),
                Next::Done(written) => {
                    self.wrote(index, *expected, written);
                    None
                }
            },
        };
        if let Some(ask) = next {
            self.clients[index].running = Some(Running { ask, ..running });
        }
    }

    fn check_read(&mut self, index: usize, highest_before: u64, seen: Seen) {
        let Ok((place, _)) = seen else { return };
        let is_true = match place.number.get() {
            0 => place.body.is_empty(),
            number => {
                let object = &self.history[number as usize - 1];
                object.content[..object.content.len() - 1] == place.body[..]
            }
        };
        if !is_true || place.number.get() < highest_before {
            self.violate(Violation::StaleRead);
        }
        // Whether there was one poll or several since the last listing makes no difference before the tenth.
        let place = Place { unlisted: place.unlisted.min(1), ..place };
        let client = &mut self.clients[index];
        client.known = Some(place.clone());
        client.seen = Some(Place { unlisted: 0, ..place });
    }

    fn wrote(&mut self, index: usize, expected: Option<Number>, written: Result<Place, WriteError>) {
        let origin = self.origin(index);
        match written {
            Ok(place) => {
                let number = place.number.get() as usize;
                let before = number.checked_sub(2).and_then(|before| self.history.get(before));
                let follows = match expected {
                    Some(expected) => {
                        expected.next() == Some(place.number) && before.is_some_and(|before| before.content.len() > 1)
                    }
                    None => before.is_none_or(|before| before.content.len() == 1),
                };
                let is_own = self.history.get(number - 1).is_some_and(|object| object.origin == origin);
                if !follows || !is_own {
                    self.violate(Violation::FalseSuccess);
                }
                let client = &mut self.clients[index];
                client.known = Some(place.clone());
                client.seen = Some(place);
            }
            Err(WriteError::Changed(_) | WriteError::Taken(_) | WriteError::LastNumber | WriteError::Poll(_)) => {
                let is_created = self.history.iter().any(|object| object.origin == origin);
                let may_count = |sent: &Late| {
                    sent.about == origin
                        && matches!(sent.request, Ask::Create(number, _) if number.get() > self.highest())
                };
                if is_created || self.late.iter().any(may_count) {
                    self.violate(Violation::FalseConflict);
                }
            }
            Err(WriteError::Overtaken(_) | WriteError::Create(_) | WriteError::Confirm(_)) => {}
        }
    }
}
