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
use super::retries::Retries;
use crate::clock::{Clock, SystemClock};
use crate::store::{ConditionalStore, StoreError, StoreErrorKind};
use crate::term::FencingToken;
use crate::util::random;

/// A value in one object of a store, which only the newest leader can write.
///
/// Every write has a fencing token. After a write with one token has succeeded, no write with a smaller token can
/// succeed, because token and value are in the same object, and one conditional write changes both. Writes with the
/// same token, such as those of two tasks of one leader, are applied one after the other, and none is lost.
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
/// A leader that only changes the object needs no preparation: [`update`](Self::update) computes the new value from
/// the value that it replaces. A leader that reads the object and then acts *elsewhere* has to call
/// [`claim`](Self::claim) and act on the value that `claim` returns. After a [`read`](Self::read) alone, the previous
/// leader's write may still be committed.
///
/// # Failures
///
/// - If the answer to a write is lost, the call reads the object and searches for the write's id before it tries again.
///   So no write is applied twice.
/// - If the store rejects a request for now, the call tries again, but not before `Retry-After`. It gives up at the
///   eighth failure in a row, and at a `Retry-After` of more than 30 seconds.
/// - After a conflict, the call tries again as long as some writer makes progress.
///
/// If a call fails in the end, [`FencedError`] says what is known about the write.
///
/// A call has no time limit except that of the store. You may drop its future when leadership ends, which
/// [`Leadership::lost`](crate::Leadership::lost) reports.
///
/// # Cancellation
///
/// If the future of a write is dropped, the write may still be committed: at most once, and not after another write of
/// the object. So it never replaces a later value. A successful [`claim`](Self::claim) makes the write's outcome final:
/// either the returned value contains the write, or the write is never committed.
///
/// # The object
///
/// The object is JSON, and the value is what serde makes of it:
///
/// ```json
/// {"fencingToken":8,"recentWrites":["0198c0de-7aaa-7bbb-8ccc-0123456789ab"],"value":1}
/// ```
///
/// An object with other content causes an error, and is not overwritten. The object may have at most
/// [`MAX_BODY_BYTES`](crate::implement::MAX_BODY_BYTES), of which all but the value takes up to 700 bytes. Do not
/// delete the object while a request of an earlier leader may be in flight, because the fence would forget its token.
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
    /// The largest token of all writes; `None` if there is no object.
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

    /// Reads the newest value. A read does not raise the fence: see [`claim`](Self::claim).
    ///
    /// # Errors
    ///
    /// [`FencedError::Unreadable`] and [`FencedError::Store`].
    pub async fn read(&self) -> Result<FencedValue<T>, FencedError> {
        let found = self.find(&mut Retries::new(&*self.clock)).await?;
        let token = found.version.is_some().then_some(found.envelope.fencing_token);
        Ok(FencedValue { token, value: self.parse(found.envelope.value.as_deref())? })
    }

    /// Raises the fence to `token` and leaves the value as it is. Returns the value.
    ///
    /// From then on, only writes with this token or a larger one change the value. A claim writes the object even if
    /// the object has this token already. So if an earlier write has an unknown outcome, the claim makes that outcome
    /// final.
    ///
    /// # Errors
    ///
    /// As for [`update`](Self::update).
    pub async fn claim(&self, token: impl Into<FencingToken>) -> Result<Option<T>, FencedError> {
        self.change(token.into(), |value| Ok((value.map(ToOwned::to_owned), self.parse(value)?))).await
    }

    /// Replaces the value, and raises the fence to `token`.
    ///
    /// # Errors
    ///
    /// As for [`update`](Self::update), except that the replaced value may have another type.
    pub async fn write(&self, token: impl Into<FencingToken>, value: &T) -> Result<(), FencedError> {
        let value = self.serialize(value)?;
        self.change(token.into(), |_| Ok((Some(value.clone()), ()))).await
    }

    /// Replaces the value with the result of `next`, and returns the new value. Raises the fence to `token`.
    ///
    /// If another write comes first, `next` is called again with the new value, and only the result of its last call is
    /// used.
    ///
    /// # Errors
    ///
    /// [`FencedError::Stale`] if the object has a larger token, because the caller no longer leads.
    /// [`FencedError::Unknown`] if the write may have been committed. After any other error, nothing was written.
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

    /// Reads the object, lets `next` compute the new value, and writes it if the object is unchanged. Repeats this
    /// until the result is known.
    async fn change<R>(
        &self,
        token: FencingToken,
        mut next: impl FnMut(Option<&RawValue>) -> Result<(Option<Box<RawValue>>, R), FencedError>,
    ) -> Result<R, FencedError> {
        let mut retries = Retries::new(&*self.clock);
        let mut sent: Option<Attempt<R>> = None;
        loop {
            let found = match self.find(&mut retries).await {
                Ok(found) => found,
                Err(error) => return Err(self.give_up(sent.and_then(|sent| sent.doubt), error)),
            };
            let mut attempt = match sent.take().map(|sent| (sent.fate(&found), sent)) {
                None => self.decide(token, found, &mut next)?,
                Some((Fate::Committed, sent)) => return Ok(sent.outcome),
                // Sent again with the same body and precondition: at most one of the requests can be committed.
                Some((Fate::Open, sent)) => sent,
                Some((Fate::Hidden, Attempt { doubt: Some(doubt), .. })) => return Err(self.unknown(doubt)),
                // If `doubt` is `None`, the effect of every request is known: the write was not committed.
                Some((Fate::Hidden | Fate::Lost, _)) => {
                    retries.reset();
                    self.decide(token, found, &mut next)?
                }
            };
            let Err(error) = self.store.put(&self.key, attempt.body.clone(), &attempt.base.precondition()).await else {
                return Ok(attempt.outcome);
            };
            let will_retry = retries.wait_after(&error).await;
            match error.kind() {
                StoreErrorKind::Ambiguous if will_retry => attempt.doubt = Some(error),
                StoreErrorKind::Ambiguous => return Err(self.unknown(error)),
                _ if will_retry => {}
                _ => return Err(self.give_up(attempt.doubt, error.into())),
            }
            sent = Some(attempt);
        }
    }

    /// Prepares a write with the value that `next` computes. Fails if the object has a larger token.
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

    async fn find(&self, retries: &mut Retries<'_>) -> Result<Found, FencedError> {
        loop {
            match self.store.get(&self.key).await {
                Ok(None) => return Ok(Found { version: None, envelope: Envelope::default() }),
                Ok(Some(object)) => {
                    let envelope = serde_json::from_slice(&object.body).map_err(|source| self.unreadable(source))?;
                    return Ok(Found { version: Some(object.version), envelope });
                }
                Err(error) if retries.wait_after(&error).await => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the error of a call that fails with `error`: `Unknown` if an earlier write may have been committed.
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

// Not derived, because a derive would require that the value implements `Clone`.
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
