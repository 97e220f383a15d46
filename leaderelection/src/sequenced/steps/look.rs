//! A look at a lock: which number is the highest, and what does it contain?

use bytes::Bytes;

use super::layout::{self, Number};
use crate::sequenced::store::Content;
use crate::store::StoreError;

/// The number of looks of which the last one lists, even if nothing seems to have changed.
const LIST_EVERY: u8 = 10;

/// The number of listings after which a look gives up if writers are always faster.
const MAX_LISTINGS: u8 = 100;

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
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
    /// The number of looks since the last listing that found nothing new.
    pub unlisted: u8,
}

impl Place {
    /// A place that a listing has just shown.
    pub(super) fn listed(number: Number, body: Bytes) -> Self {
        Self { number, body, unlisted: 0 }
    }

    /// Returns `true` if the lock exists.
    #[must_use]
    pub fn exists(&self) -> bool {
        !self.body.is_empty()
    }
}

/// The reason for which a look has no result.
#[derive(Debug)]
pub enum LookError {
    /// The content of this number is not complete.
    Incomplete(Number),
    /// The lock was written again after every listing.
    TooFast,
    /// The store failed.
    Store(StoreError),
}

/// The highest number with its body, and the content from which the body was taken if one was read.
pub type Seen = Result<(Place, Option<Content>), LookError>;

/// A look that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Look {
    known: Option<Place>,
    step: Step,
    listings: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// Reads the number after the known place.
    Beyond,
    /// Reads the known place, after nothing was found beyond it.
    Again,
    List,
    /// Reads the highest number of the listing.
    Highest(Number),
}

impl Look {
    /// Begins a look from the place that is known. Two reads are enough if nothing has changed.
    #[must_use]
    pub fn begin(known: Option<Place>) -> (Self, Ask) {
        let beyond = known.as_ref().filter(|place| place.number > Number::ZERO && place.unlisted + 1 < LIST_EVERY);
        match beyond.and_then(|place| place.number.next()) {
            Some(next) => (Self { known, step: Step::Beyond, listings: 0 }, Ask::Read(next)),
            None => Self::begin_with_listing(known),
        }
    }

    /// Begins a look that does not trust the known place.
    #[must_use]
    pub fn begin_with_listing(known: Option<Place>) -> (Self, Ask) {
        let look = Self { known, step: Step::List, listings: 1 };
        let ask = Ask::List(look.before_known());
        (look, ask)
    }

    /// Takes the answer to the last request. A result has the age of the content if it was read just now.
    pub fn next(&mut self, answer: Result<Told, StoreError>) -> Next<Seen> {
        let told = match answer {
            Ok(told) => told,
            Err(error) => return Next::Done(Err(LookError::Store(error))),
        };
        match (self.step, told) {
            (Step::Beyond, Told::Content(None)) => {
                // What was created beyond may be removed again. Then the known place was removed before.
                let known = self.known.as_ref().map_or(Number::ZERO, |place| place.number);
                self.step = Step::Again;
                Next::Ask(Ask::Read(known))
            }
            (Step::Again, Told::Content(Some(content))) => match &self.known {
                Some(place) if layout::body(&content.bytes).as_ref() == Some(&place.body) => {
                    let place = Place { unlisted: place.unlisted + 1, ..place.clone() };
                    Next::Done(Ok((place, Some(content))))
                }
                _ => self.list(),
            },
            (Step::List, Told::Numbers(numbers)) => self.listed(numbers),
            (Step::Highest(number), Told::Content(Some(content))) => match layout::body(&content.bytes) {
                Some(body) => Next::Done(Ok((Place::listed(number, body), Some(content)))),
                None => Next::Done(Err(LookError::Incomplete(number))),
            },
            // Something is beyond, or the place is gone, or the highest number is no longer the highest.
            _ => self.list(),
        }
    }

    fn listed(&mut self, numbers: Vec<Number>) -> Next<Seen> {
        let known = self.known.take();
        match numbers.into_iter().max() {
            // A known body is never combined with a listed number: the two would come from different answers.
            Some(highest) => {
                self.step = Step::Highest(highest);
                Next::Ask(Ask::Read(highest))
            }
            // Only a lock that somebody has discarded has lost its highest number. It may begin anew.
            None if known.is_some_and(|place| place.number > Number::ZERO) => self.list(),
            None => Next::Done(Ok((Place::listed(Number::ZERO, Bytes::new()), None))),
        }
    }

    fn list(&mut self) -> Next<Seen> {
        if self.listings == MAX_LISTINGS {
            return Next::Done(Err(LookError::TooFast));
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
