//! A poll of a lock: which number is the highest, and what does it contain?

use std::time::Duration;

use bytes::Bytes;

use super::layout::{self, Number};
use crate::store::Content;
use leaderelection::StoreError;

/// The number of polls of which the last one lists, even if nothing seems to have changed.
const LIST_EVERY: u8 = 10;

/// The number of listings after which a poll gives up if writers are always faster.
const MAX_LISTINGS: u8 = 100;

/// The number of objects that a poll reads one by one beyond the known place, before it lists.
const MAX_WALK: u64 = 4;

/// A request about one lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// A listing of all numbers, or of those after a number.
    List(Option<Number>),
    /// A read of the content at a number.
    Read(Number),
    /// The creation of a number, with a content.
    Create(Number, Bytes),
    /// The removal of a number.
    Remove(Number),
}

/// The answer to a request that did not fail.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reported {
    /// The numbers of a listing, in any order.
    Numbers(Vec<Number>),
    /// The content, if there is an object.
    Content(Option<Content>),
    /// The object is created or removed.
    Done,
}

/// The step after an answer.
#[derive(Debug)]
pub enum Next<T> {
    /// A further request.
    Ask(Ask),
    /// The result of the call.
    Done(T),
}

/// A number that was the highest once, with its content.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The number; zero for a lock that was never written.
    pub number: Number,
    /// The body, which is empty if the lock is deleted or was never written.
    pub body: Bytes,
    /// The number of polls since the last listing. None of them has found anything new.
    pub unlisted: u8,
    /// The write of this number has left objects that are old, and so the next write removes some of them.
    pub has_old: bool,
}

impl Place {
    /// A place that a listing has just shown to be the highest.
    pub(super) fn listed(number: Number, body: Bytes) -> Self {
        Self { number, body, unlisted: 0, has_old: false }
    }

    /// The same place for a poll that has to list, because a write may have been committed since.
    pub(crate) fn doubted(self) -> Self {
        Self { unlisted: LIST_EVERY, ..self }
    }

    /// Returns `true` if the lock exists.
    #[must_use]
    pub fn exists(&self) -> bool {
        !self.body.is_empty()
    }
}

/// The reason for which a poll has no result.
#[derive(Debug)]
pub enum PollError {
    /// The content of this number is not complete.
    Incomplete(Number),
    /// The lock was written again after every listing.
    TooFast,
    /// The store failed.
    Store(StoreError),
}

/// The highest number with its body, and the age of its content if it was read just now and the store told it.
pub type Seen = Result<(Place, Option<Duration>), PollError>;

/// A poll that is in flight.
///
/// A content counts only if a listing that began after its read shows its number as the highest. Between a listing and a
/// read, the number may be removed, and a creation that is committed late may put another content there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Poll {
    known: Option<Place>,
    /// The highest number that was read, with its content.
    read: Option<(Number, Content)>,
    step: Step,
    listings: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// Reads this number, beyond the known place.
    Beyond(Number),
    /// Reads the known place, after nothing was found beyond it.
    Again,
    List,
    /// Reads the highest number of a listing.
    Highest(Number),
}

impl Poll {
    /// Begins a poll from the place that is known. Two reads are enough if nothing has changed.
    #[must_use]
    pub fn begin(known: Option<Place>) -> (Self, Ask) {
        match known.as_ref().filter(|place| place.number > Number::ZERO).and_then(|place| place.number.next()) {
            Some(next) => (Self { known, read: None, step: Step::Beyond(next), listings: 0 }, Ask::Read(next)),
            None => Self::begin_with_listing(known),
        }
    }

    /// Begins a poll that needs no read if the known place is still the highest.
    #[must_use]
    pub fn begin_with_listing(known: Option<Place>) -> (Self, Ask) {
        let poll = Self { known, read: None, step: Step::List, listings: 1 };
        let ask = Ask::List(poll.before_known());
        (poll, ask)
    }

    /// Takes the answer to the last request.
    pub fn next(&mut self, answer: Result<Reported, StoreError>) -> Next<Seen> {
        let told = match answer {
            Ok(told) => told,
            Err(error) => return Next::Done(Err(PollError::Store(error))),
        };
        match (self.step, told) {
            (Step::Beyond(number), Reported::Content(Some(content))) => {
                self.read = Some((number, content));
                let known = self.known.as_ref().map_or(0, |place| place.number.get());
                match number.next().filter(|_| number.get() - known < MAX_WALK) {
                    Some(next) => self.read(Step::Beyond(next), next),
                    None => self.list(),
                }
            }
            (Step::Beyond(_), Reported::Content(None)) => match &self.known {
                // What was created beyond may be removed again. Then the known place was removed before.
                Some(place) if self.read.is_none() && place.unlisted + 1 < LIST_EVERY => {
                    self.read(Step::Again, place.number)
                }
                _ => self.list(),
            },
            (Step::Again, Reported::Content(Some(content))) => match self.known.take() {
                Some(place) if layout::body(&content.bytes).as_ref() == Some(&place.body) => {
                    let place = Place { unlisted: place.unlisted + 1, ..place };
                    Next::Done(Ok((place, content.age)))
                }
                _ => self.list(),
            },
            (Step::List, Reported::Numbers(numbers)) => self.listed(numbers),
            (Step::Highest(number), Reported::Content(content)) => {
                self.read = content.map(|content| (number, content));
                self.list()
            }
            // The known place is gone.
            _ => self.list(),
        }
    }

    fn listed(&mut self, numbers: Vec<Number>) -> Next<Seen> {
        let Some(highest) = numbers.into_iter().max() else {
            // Only a lock that somebody has discarded has lost its highest number. It may begin anew.
            return match self.known.take() {
                Some(place) if place.number > Number::ZERO => self.list(),
                _ => Next::Done(Ok((Place::listed(Number::ZERO, Bytes::new()), None))),
            };
        };
        if let Some((_, content)) = self.read.take_if(|(number, _)| *number == highest) {
            return Next::Done(match layout::body(&content.bytes) {
                Some(body) => Ok((Place::listed(highest, body), content.age)),
                None => Err(PollError::Incomplete(highest)),
            });
        }
        match self.known.take_if(|place| place.number == highest) {
            Some(place) => Next::Done(Ok((Place { unlisted: 0, ..place }, None))),
            None => self.read(Step::Highest(highest), highest),
        }
    }

    fn read(&mut self, step: Step, number: Number) -> Next<Seen> {
        self.step = step;
        Next::Ask(Ask::Read(number))
    }

    fn list(&mut self) -> Next<Seen> {
        if self.listings == MAX_LISTINGS {
            return Next::Done(Err(PollError::TooFast));
        }
        self.listings += 1;
        self.step = Step::List;
        Next::Ask(Ask::List(self.before_known()))
    }

    /// The number before the known place, so that a listing after it shows the place and what is newer.
    fn before_known(&self) -> Option<Number> {
        self.known.as_ref().and_then(|place| place.number.get().checked_sub(1)).map(Number::new)
    }
}
