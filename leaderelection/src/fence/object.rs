//! One object of a store, behind a fence.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::attempt::{Attempt, Fate, Found};
use super::envelope::Envelope;
use super::error::FencedError;
use super::patience::Patience;
use crate::clock::{Clock, SystemClock};
use crate::store::{ConditionalStore, StoreError, StoreErrorKind};
use crate::term::FencingToken;
use crate::util::random;

/// A value in one object of a store, which only the newest leader can write.
///
/// Every write shows a fencing token. Once a write with one token has succeeded, no write with a smaller token can:
/// token and value are in the same object, and one conditional write changes both. Writes with the same token, such
/// as those of two tasks of one leader, happen one after the other, and none is lost.
///
/// ```
/// use leaderelection::{FencingToken, MemoryStore};
/// use leaderelection::fence::FencedObject;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let counter = FencedObject::<_, u64>::new(MemoryStore::new(), "counter");
/// // In a program, the token is `leadership.fencing_token()`.
/// let old_leader = FencingToken::new(7);
/// counter.update(old_leader, |count| count.unwrap_or(0) + 1).await?;
///
/// let new_leader = FencingToken::new(8);
/// assert_eq!(counter.claim(new_leader).await?, Some(1));
///
/// let too_late = counter.update(old_leader, |count| count.unwrap_or(0) + 1).await.unwrap_err();
/// assert_eq!(too_late.stale().map(|stale| stale.highest), Some(new_leader));
/// assert_eq!(counter.read().await?.value, Some(1));
/// # Ok(())
/// # }
/// ```
///
/// # The first action of a new leader
///
/// A leader that only changes the object needs no preparation: [`update`](Self::update) decides on the value that it
/// replaces. A leader that reads the object and then acts *elsewhere* calls [`claim`](Self::claim) first, and acts on
/// the value that it returns. After a mere [`read`](Self::read), a write of the previous leader may still be committed.
///
/// # Failures
///
/// A write whose answer is lost is looked up by its id before it is tried again, and so is never applied twice.
/// A store that rejects a call for now is asked again, not before its `Retry-After`, up to 8 times in a row. A
/// call repeats its write after a conflict as long as some writer makes progress. [`FencedError`] contains the
/// known result in the end.
///
/// No call has a limit of time but the store's own. A leader bounds a call with its leadership: the future may be
/// dropped when [`Leadership::lost`](crate::Leadership::lost) completes.
///
/// # Cancellation
///
/// After the future of a write was dropped, the write may still happen: at most once, and only as long as no other
/// write to the object has succeeded. So the write cannot replace a later value. A [`claim`](Self::claim) that succeeds
/// decides the write: the returned value contains the write, or no value ever will.
///
/// # The object
///
/// The object is JSON, and the value is what serde makes of it:
///
/// ```json
/// {"fencingToken":8,"recentWrites":["0198c0de-7aaa-7bbb-8ccc-0123456789ab"],"value":1}
/// ```
///
/// An object with other content is neither read nor overwritten. An object may have
/// [`MAX_BODY_BYTES`](crate::implement::MAX_BODY_BYTES), of which the envelope takes up to 700 bytes. Do not delete the
/// object while a request of an earlier leader may still be in flight, because the token would be gone.
pub struct FencedObject<S, T> {
    store: S,
    key: String,
    clock: Arc<dyn Clock>,
    value: PhantomData<fn() -> T>,
}

/// The content of a [`FencedObject`] at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FencedValue<T> {
    /// The largest token that has written; `None` if there is no object.
    pub token: Option<FencingToken>,
    /// The value; `None` if there is no object, or only a claimed object without a value.
    pub value: Option<T>,
}

impl<S: ConditionalStore, T: Serialize + DeserializeOwned> FencedObject<S, T> {
    /// Opens the fenced object at `key`. The first write creates the object.
    #[must_use]
    pub fn new(store: S, key: impl Into<String>) -> Self {
        Self { store, key: key.into(), clock: Arc::new(SystemClock), value: PhantomData }
    }

    /// Sets another clock for the waits between tries, for tests.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Reads the newest value. This call does not raise the fence: see [`claim`](Self::claim).
    ///
    /// # Errors
    ///
    /// [`FencedError::Unreadable`] and [`FencedError::Store`].
    pub async fn read(&self) -> Result<FencedValue<T>, FencedError> {
        let found = self.find(&mut Patience::new(&*self.clock)).await?;
        let token = found.version.is_some().then_some(found.envelope.fencing_token);
        Ok(FencedValue { token, value: self.parse(found.envelope.value.as_deref())? })
    }

    /// Raises the fence to `token` and leaves the value as it is. Returns the value.
    ///
    /// From then on, no write with a smaller token succeeds, so that the value changes only by writes with this token
    /// or a larger one. A claim writes the object even if the object has this token already. This decides a write whose
    /// outcome an earlier call with the same token left open.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    pub async fn claim(&self, token: impl Into<FencingToken>) -> Result<Option<T>, FencedError> {
        self.change(token.into(), |value| Ok((value.map(ToOwned::to_owned), self.parse(value)?))).await
    }

    /// Replaces the value, whatever its content. Raises the fence to `token`.
    ///
    /// # Errors
    ///
    /// The same as for [`update`](Self::update), except that the replaced value may be of another type.
    pub async fn write(&self, token: impl Into<FencingToken>, value: &T) -> Result<(), FencedError> {
        let value = self.serialize(value)?;
        self.change(token.into(), |_| Ok((Some(value.clone()), ()))).await
    }

    /// Replaces the value by the result of `next`, and returns the new value. Raises the fence to `token`.
    ///
    /// `next` is called again when another write has come first; only the last call counts.
    ///
    /// # Errors
    ///
    /// [`FencedError::Stale`] if the object holds a larger token: the caller does not lead any more.
    /// [`FencedError::Unknown`] if the write may have happened. After any other error, nothing was written.
    pub async fn update(
        &self,
        token: impl Into<FencingToken>,
        mut next: impl FnMut(Option<T>) -> T,
    ) -> Result<T, FencedError> {
        self.change(token.into(), |value| {
            let next = next(self.parse(value)?);
            Ok((Some(self.serialize(&next)?), next))
        })
        .await
    }

    /// Reads, decides by `next`, and writes if nothing has changed in between; repeats this until the result is
    /// known.
    async fn change<R>(
        &self,
        token: FencingToken,
        mut next: impl FnMut(Option<&RawValue>) -> Result<(Option<Box<RawValue>>, R), FencedError>,
    ) -> Result<R, FencedError> {
        let mut patience = Patience::new(&*self.clock);
        let mut sent: Option<Attempt<R>> = None;
        loop {
            let found = match self.find(&mut patience).await {
                Ok(found) => found,
                Err(error) => return Err(self.give_up(sent.and_then(|sent| sent.doubt), error)),
            };
            let mut attempt = match sent.take().map(|sent| (sent.fate(&found), sent)) {
                None => self.decide(token, found, &mut next)?,
                Some((Fate::Committed, sent)) => return Ok(sent.outcome),
                // The body is the same again: at most one of the requests can take effect, and the effect of
                // each is the same.
                Some((Fate::Open, sent)) => sent,
                Some((Fate::Hidden, Attempt { doubt: Some(doubt), .. })) => return Err(self.unknown(doubt)),
                Some((Fate::Hidden | Fate::Lost, _)) => {
                    patience.reset();
                    self.decide(token, found, &mut next)?
                }
            };
            let Err(error) = self.store.put(&self.key, attempt.body.clone(), &attempt.base.precondition()).await else {
                return Ok(attempt.outcome);
            };
            let goes_on = patience.wait_out(&error).await;
            match error.kind() {
                StoreErrorKind::Ambiguous if goes_on => attempt.doubt = Some(error),
                StoreErrorKind::Ambiguous => return Err(self.unknown(error)),
                _ if goes_on => {}
                _ => return Err(self.give_up(attempt.doubt, error.into())),
            }
            sent = Some(attempt);
        }
    }

    /// Returns the write of `next`, unless the object refuses the token.
    fn decide<R>(
        &self,
        token: FencingToken,
        base: Found,
        next: impl FnOnce(Option<&RawValue>) -> Result<(Option<Box<RawValue>>, R), FencedError>,
    ) -> Result<Attempt<R>, FencedError> {
        base.envelope.check(token).map_err(|stale| FencedError::Stale { object: self.to_string(), stale })?;
        let (value, outcome) = next(base.envelope.value.as_deref())?;
        let write_id = random::uuid();
        let envelope = base.envelope.followed_by(token, &write_id, value);
        let body = serde_json::to_vec(&envelope).map_err(|source| self.unserializable(source))?.into();
        Ok(Attempt { base, write_id, body, outcome, doubt: None })
    }

    async fn find(&self, patience: &mut Patience<'_>) -> Result<Found, FencedError> {
        loop {
            match self.store.get(&self.key).await {
                Ok(None) => return Ok(Found { version: None, envelope: Envelope::default() }),
                Ok(Some(object)) => {
                    let envelope = serde_json::from_slice(&object.body).map_err(|source| self.unreadable(source))?;
                    return Ok(Found { version: Some(object.version), envelope });
                }
                Err(error) if patience.wait_out(&error).await => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the error of a call that ends with `error`, or the doubt about an earlier request, which takes
    /// precedence.
    fn give_up(&self, doubt: Option<StoreError>, error: FencedError) -> FencedError {
        doubt.map_or(error, |doubt| self.unknown(doubt))
    }

    fn unknown(&self, source: StoreError) -> FencedError {
        FencedError::Unknown { object: self.to_string(), source }
    }

    fn parse(&self, value: Option<&RawValue>) -> Result<Option<T>, FencedError> {
        let parse = |value: &RawValue| serde_json::from_str(value.get());
        value.map(parse).transpose().map_err(|source| self.unreadable(source))
    }

    fn serialize(&self, value: &T) -> Result<Box<RawValue>, FencedError> {
        serde_json::value::to_raw_value(value).map_err(|source| self.unserializable(source))
    }

    fn unreadable(&self, source: serde_json::Error) -> FencedError {
        FencedError::Unreadable { object: self.to_string(), source }
    }

    fn unserializable(&self, source: serde_json::Error) -> FencedError {
        FencedError::Unserializable { object: self.to_string(), source }
    }
}

impl<S: ConditionalStore, T> fmt::Display for FencedObject<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.store.describe(&self.key))
    }
}

// Written by hand, because a derive would require `Clone` of the value too.
impl<S: Clone, T> Clone for FencedObject<S, T> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), key: self.key.clone(), clock: Arc::clone(&self.clock), value: PhantomData }
    }
}

impl<S: fmt::Debug, T> fmt::Debug for FencedObject<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedObject").field("store", &self.store).field("key", &self.key).finish_non_exhaustive()
    }
}
