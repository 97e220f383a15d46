//! The client of a store, which is made anew after a call without an answer.
//!
//! A client keeps its connections. When a firewall has forgotten them, or an address has moved, they stay open and silent, and
//! each further request that takes one of them is lost as well. A new client has none of them.

use std::error::Error as StdError;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::implement::is_given_up;
use leaderelection::{StoreError, StoreErrorKind};
use tokio::sync::OnceCell;

use super::{Words, failed, is_about_certificates};

/// The time after which a call that nobody waits for any more counts as one without an answer, and after which a client
/// is replaced because of an error. Otherwise, a store that fails would be burdened by a new connection for each request.
const LONG: Duration = Duration::from_secs(1);

/// A client that was made less than this ago is not the reason of a refusal.
const YOUNG: Duration = Duration::from_secs(3);

type Made<C> = Result<C, Box<dyn StdError + Send + Sync>>;

type Make<C> = Box<dyn Fn() -> BoxFuture<'static, Made<C>> + Send + Sync>;

/// A client that is made when a call needs it, and anew after a call without an answer.
#[derive(Clone)]
pub struct Fresh<C>(Arc<ClientSlot<C>>);

// Written by hand, because a client may print a secret.
impl<C> fmt::Debug for Fresh<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fresh").finish_non_exhaustive()
    }
}

struct ClientSlot<C> {
    /// `None` for a client that only its owner could make.
    make: Option<Make<C>>,
    present: Mutex<Arc<Present<C>>>,
}

/// A client, and the calls that share its connections.
struct Present<C> {
    client: OnceCell<(C, LocalInstant)>,
    /// The client before it, for as long as it may have to go on because no other can be made.
    former: Mutex<Option<C>>,
}

impl<C> Present<C> {
    fn after(former: Option<C>) -> Arc<Self> {
        Arc::new(Self { client: OnceCell::new(), former: Mutex::new(former) })
    }
}

impl<C: Clone + Send + 'static> Fresh<C> {
    /// Makes the first client for the first call.
    pub fn made_by(make: impl Fn() -> BoxFuture<'static, Made<C>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ClientSlot { make: Some(Box::new(make)), present: Mutex::new(Present::after(None)) }))
    }

    /// Begins with this client, which is never replaced.
    pub fn fixed(client: C) -> Self {
        let client = OnceCell::new_with(Some((client, SystemClock.now())));
        Self(Arc::new(ClientSlot {
            make: None,
            present: Mutex::new(Arc::new(Present { client, former: Mutex::default() })),
        }))
    }

    /// Begins with the same client, and makes the later ones.
    pub fn renewed_by(&self, make: impl Fn() -> BoxFuture<'static, Made<C>> + Send + Sync + 'static) -> Self {
        let present = Mutex::new(Arc::clone(&lock(&self.0.present)));
        Self(Arc::new(ClientSlot { make: Some(Box::new(make)), present }))
    }

    /// Begins with `client`, and makes the later ones, which takes no time.
    pub fn new<E>(client: C, make: impl Fn() -> Result<C, E> + Send + Sync + 'static) -> Self
    where
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        Self::fixed(client).renewed_by(move || Box::pin(std::future::ready(make().map_err(Into::into))))
    }

    /// The present client, for a question that sends nothing.
    pub async fn client(&self, object: &str) -> Result<C, StoreError> {
        let present = Arc::clone(&lock(&self.0.present));
        self.of(&present, object).await.map(|(client, _)| client)
    }

    /// Asks the present client. If the answer does not come, the next call has another client, with other connections.
    /// A call that began with an earlier client changes nothing.
    pub async fn ask<T>(
        &self,
        object: &str,
        call: impl AsyncFnOnce(C) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let present = Arc::clone(&lock(&self.0.present));
        let (client, made) = self.of(&present, object).await?;
        let mut asking = Asking { fresh: self, present: &present, began: SystemClock.now(), is_over: false, object };
        let answer = call(client).await;
        asking.is_over = true;
        // The connection of a request whose effect is unknown may have failed, and those beside it. And a client has read its
        // certificates once.
        let doubts = |error: &StoreError| error.kind() == StoreErrorKind::Ambiguous || is_about_certificates(error);
        if answer.as_ref().is_err_and(doubts) && elapsed(made) >= LONG {
            asking.replace();
        }
        drop(asking);
        answer
    }

    /// Notes that the service has refused what this client presents: the next call has another one. Returns `false` if it has
    /// just been made, or if no other can be.
    pub fn refused(&self) -> bool {
        let mut present = lock(&self.0.present);
        let former = match present.client.get() {
            _ if self.0.make.is_none() => return false,
            Some((_, made)) if elapsed(*made) < YOUNG => return false,
            Some((client, _)) => client.clone(),
            None => return true,
        };
        *present = Present::after(Some(former));
        true
    }

    /// Lets the next call have another client, of settings that have changed.
    pub fn renew(&self) {
        let mut present = lock(&self.0.present);
        let former = present.client.get().map(|(client, _)| client.clone());
        *present = Present::after(former);
    }

    async fn of(&self, present: &Present<C>, object: &str) -> Result<(C, LocalInstant), StoreError> {
        let make = async || {
            let Some(make) = &self.0.make else { unreachable!("a client that is not made is there") };
            let made = make().await;
            let former = lock(&present.former).take();
            match (made, former) {
                (Ok(client), _) => Ok((client, SystemClock.now())),
                (Err(problem), Some(former)) => {
                    tracing::warn!(object, problem = &*problem, "no new client can be made; the old one stays in use");
                    Ok((former, SystemClock.now()))
                }
                (Err(problem), None) => {
                    let advice = "cannot create a client; check the credentials and the endpoint";
                    Err(failed(object, (StoreErrorKind::Fatal, advice), Words::of_error(&*problem)))
                }
            }
        };
        present.client.get_or_try_init(make).await.cloned()
    }
}

/// A call that has begun and has no answer yet.
struct Asking<'a, C: Clone> {
    fresh: &'a Fresh<C>,
    present: &'a Arc<Present<C>>,
    began: LocalInstant,
    is_over: bool,
    object: &'a str,
}

impl<C: Clone> Asking<'_, C> {
    fn replace(&self) {
        let ClientSlot { make, present } = &*self.fresh.0;
        let mut present = lock(present);
        if make.is_some() && Arc::ptr_eq(&present, self.present) {
            *present = Present::after(present.client.get().map(|(client, _)| client.clone()));
            tracing::debug!(object = self.object, "the next request takes a new connection");
        }
    }
}

impl<C: Clone> Drop for Asking<'_, C> {
    fn drop(&mut self) {
        if !self.is_over && (is_given_up() || elapsed(self.began) >= LONG) {
            self.replace();
        }
    }
}

fn elapsed(since: LocalInstant) -> Duration {
    SystemClock.now().saturating_since(since)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::pending;
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures_util::{FutureExt as _, poll};
    use tokio::sync::oneshot;

    use super::*;
    use crate::request::bounded;

    const SHORT: Duration = Duration::from_millis(2);

    /// A client that is the number of clients before it.
    fn counted() -> Fresh<u32> {
        let made = AtomicU32::new(0);
        Fresh::new(0, move || Ok::<_, Infallible>(made.fetch_add(1, Ordering::SeqCst) + 1))
    }

    async fn unanswered(fresh: &Fresh<u32>) {
        bounded(SHORT, "key", fresh.ask("key", async |_| pending::<Result<(), StoreError>>().await)).await.unwrap_err();
    }

    #[tokio::test]
    async fn a_call_without_an_answer_is_followed_by_another_client() {
        let fresh = counted();
        unanswered(&fresh).await;
        assert_eq!(fresh.ask("key", async |client| Ok(client)).await.unwrap(), 1);
        assert_eq!(fresh.ask("key", async |client| Ok(client)).await.unwrap(), 1, "an answer changes nothing");
        let fixed = Fresh::fixed(7);
        unanswered(&fixed).await;
        assert_eq!(fixed.ask("key", async |client| Ok(client)).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_call_that_nobody_needs_any_more_costs_no_client() {
        let fresh = counted();
        let mut call = Box::pin(fresh.ask("key", async |_| pending::<Result<(), StoreError>>().await));
        assert!(poll!(&mut call).is_pending());
        drop(call);
        assert_eq!(fresh.client("key").await.unwrap(), 0);
    }

    #[tokio::test]
    async fn calls_of_an_earlier_client_change_nothing() {
        let fresh = counted();
        let mut old: Vec<_> = (0..3).map(|_| Box::pin(unanswered(&fresh))).collect();
        for call in &mut old {
            assert!(poll!(call).is_pending());
        }
        unanswered(&fresh).await;
        assert_eq!(fresh.client("key").await.unwrap(), 1);
        for call in old {
            call.await;
        }
        assert_eq!(fresh.client("key").await.unwrap(), 1);
    }

    #[tokio::test]
    async fn clients_that_cannot_be_made_leave_the_former_one() {
        let fresh = Fresh::new(7, || Err("Oh no"));
        unanswered(&fresh.clone()).await;
        assert_eq!(fresh.client("key").await.unwrap(), 7);
        let none = Fresh::<u32>::made_by(|| async { Err("Oh no".into()) }.boxed());
        let error = none.client("key").await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Fatal);
        assert!(error.to_string().starts_with("key: cannot create a client"), "{error}");
    }

    #[tokio::test]
    async fn many_calls_make_one_client() {
        let (made, first) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(None)));
        let (count, waiting) = (Arc::clone(&made), Arc::clone(&first));
        let fresh = Fresh::fixed(0).renewed_by(move || {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            let (go, gone) = oneshot::channel::<()>();
            *lock(&waiting) = Some(go);
            async move { gone.await.map(|()| number).map_err(Into::into) }.boxed()
        });
        unanswered(&fresh).await;
        let mut calls: Vec<_> = (0..3).map(|_| Box::pin(fresh.ask("key", async |client| Ok(client)))).collect();
        for call in &mut calls {
            assert!(poll!(call).is_pending());
        }
        lock(&first).take().unwrap().send(()).unwrap();
        for call in calls {
            assert_eq!(call.await.unwrap(), 1);
        }
        assert_eq!(made.load(Ordering::SeqCst), 1);
    }
}
