//! A write: the creation of the next number, the listing that confirms it, and the removal of what is old.

use bytes::Bytes;

use super::layout::{self, Number};
use super::poll::{Ask, Next, Place, Poll, PollError, Reported};
use leaderelection::{StoreError, StoreErrorKind};

/// The part of the kept objects that may be too many, so that not every write of a long history lists all of it.
const SURPLUS: u64 = 8;

/// The largest number of objects that a write removes, so that a sweep takes no longer than a request may.
const MOST_REMOVALS: usize = 16;

/// The reason for which a write is not committed, or is not known to be committed.
#[derive(Debug)]
pub enum WriteError {
    /// The lock has this number, and not the expected one.
    Changed(Number),
    /// Somebody else has created the number.
    Taken(Number),
    /// The number is created. A newer one exists, or its own one is not listed: the number may have been used before.
    Overtaken(Number),
    /// The number has no successor.
    LastNumber,
    /// The poll before the creation failed.
    Poll(PollError),
    /// The creation failed.
    Create(StoreError),
    /// The listing after the creation failed.
    Confirm(StoreError),
}

/// A write that is in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Write {
    /// The number that the write replaces; `None` if there must be no object.
    expected: Option<Number>,
    body: Bytes,
    keep: u64,
    /// The last write of this process has left objects that are old.
    sweeps: bool,
    step: Step,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step {
    Poll(Poll),
    Create(Number),
    Confirm(Number),
    /// Removes the numbers, the last one of the list first.
    Sweep {
        number: Number,
        old: Vec<Number>,
        /// More objects are old than this write removes.
        leaves_some: bool,
    },
}

impl Write {
    /// Begins a write of a body on the expected number, or on no object.
    ///
    /// A place that a listing has shown, or that this process has written, saves the poll.
    #[must_use]
    pub fn begin(known: Option<Place>, expected: Option<Number>, body: Bytes, keep: u64) -> (Self, Ask) {
        let sweeps = known.as_ref().is_some_and(|place| place.has_old);
        let is_known = |place: &Place| Some(place.number) == expected && place.exists() && place.unlisted == 0;
        let next = known.as_ref().filter(|place| is_known(place)).and_then(|place| place.number.next());
        let (step, ask) = match next {
            Some(number) => (Step::Create(number), Ask::Create(number, layout::complete(&body))),
            None => {
                let (poll, ask) = Poll::begin_with_listing(known);
                (Step::Poll(poll), ask)
            }
        };
        (Self { expected, body, keep, sweeps, step }, ask)
    }

    /// Takes the answer to the last request.
    pub fn next(&mut self, answer: Result<Reported, StoreError>) -> Next<Result<Place, WriteError>> {
        match &mut self.step {
            Step::Poll(poll) => match poll.next(answer) {
                Next::Ask(ask) => Next::Ask(ask),
                Next::Done(Err(error)) => Next::Done(Err(WriteError::Poll(error))),
                Next::Done(Ok((place, _))) => self.polled(&place),
            },
            Step::Create(number) => {
                let number = *number;
                match answer {
                    Ok(_) => self.confirm(number),
                    Err(error) if error.kind() == StoreErrorKind::Conflict => {
                        Next::Done(Err(WriteError::Taken(number)))
                    }
                    Err(error) => Next::Done(Err(WriteError::Create(error))),
                }
            }
            Step::Confirm(number) => {
                let number = *number;
                match answer {
                    Ok(Reported::Numbers(numbers)) => self.confirmed(number, numbers),
                    Ok(_) => Next::Done(Err(WriteError::Overtaken(number))),
                    Err(error) => Next::Done(Err(WriteError::Confirm(error))),
                }
            }
            Step::Sweep { number, old, leaves_some } => {
                // What is newer stays as long as something older stays, or a reader at the older place would take the
                // newer one for one that was never created.
                if answer.is_err() {
                    old.clear();
                }
                sweep(*number, old, *leaves_some, &self.body)
            }
        }
    }

    fn polled(&mut self, place: &Place) -> Next<Result<Place, WriteError>> {
        let current = place.exists().then_some(place.number);
        if current != self.expected {
            return Next::Done(Err(WriteError::Changed(place.number)));
        }
        let Some(number) = place.number.next() else { return Next::Done(Err(WriteError::LastNumber)) };
        self.step = Step::Create(number);
        Next::Ask(Ask::Create(number, layout::complete(&self.body)))
    }

    fn confirm(&mut self, number: Number) -> Next<Result<Place, WriteError>> {
        self.step = Step::Confirm(number);
        let sweeps = self.sweeps || number.get().is_multiple_of((self.keep / SURPLUS).max(1));
        Next::Ask(Ask::List(if sweeps { None } else { Some(Number::new(number.get() - 1)) }))
    }

    fn confirmed(&mut self, number: Number, mut numbers: Vec<Number>) -> Next<Result<Place, WriteError>> {
        if numbers.iter().max() != Some(&number) {
            return Next::Done(Err(WriteError::Overtaken(number)));
        }
        numbers.retain(|old| old.get() <= number.get().saturating_sub(self.keep));
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        let surplus = numbers.len().saturating_sub(MOST_REMOVALS);
        numbers.drain(..surplus);
        let leaves_some = surplus > 0;
        let next = sweep(number, &mut numbers, leaves_some, &self.body);
        self.step = Step::Sweep { number, old: numbers, leaves_some };
        next
    }
}

/// Removes the oldest number, or ends the write if none is old.
fn sweep(number: Number, old: &mut Vec<Number>, leaves_some: bool, body: &Bytes) -> Next<Result<Place, WriteError>> {
    match old.pop() {
        Some(oldest) => Next::Ask(Ask::Remove(oldest)),
        None => Next::Done(Ok(Place { has_old: leaves_some, ..Place::listed(number, body.clone()) })),
    }
}
