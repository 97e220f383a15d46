//! Credentials that are kept, and loaded anew before they end: by one load for all requests, on a task of its own.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::implement::loading_credentials;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// The time before the end from which new ones are loaded. A source that is down for some minutes costs no request.
const EARLY: Duration = Duration::from_secs(15 * 60);

/// The time after which what has no end is loaded anew: somebody may have replaced it.
const WITHOUT_END: Duration = Duration::from_secs(15 * 60);

/// The longest time before the end from which nothing is signed any more.
const MARGIN: Duration = Duration::from_secs(10);

/// The limits of the pause after a load that has failed, or that has brought the same again.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Credentials that were loaded less than this ago are not the reason of a refusal, or are no better when they are loaded
/// again.
const YOUNG: Duration = Duration::from_secs(3);

/// The longest time of a load. Without a limit, a source that never answers would be asked once.
const LOAD_LIMIT: Duration = Duration::from_secs(60);

/// Credentials, as their source has given them.
#[derive(Clone)]
pub struct Loaded<T> {
    value: T,
    /// The time from which it is loaded anew, while it still serves.
    renewed_from: LocalInstant,
    /// The end, if it has one.
    ends: Option<LocalInstant>,
}

// Written by hand, because the value is a secret.
impl<T> fmt::Debug for Loaded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded").field("ends", &self.ends).finish_non_exhaustive()
    }
}

impl<T> Loaded<T> {
    /// A value that is valid for `life` from `now` on, or without an end.
    pub fn valid_for(value: T, now: LocalInstant, life: Option<Duration>) -> Self {
        let Some(life) = life else { return Self { value, renewed_from: now + WITHOUT_END, ends: None } };
        // A source may give the same until shortly before the end: what is left is halved each time.
        let early = EARLY.min(life / 2);
        let renewed_from = (now + (life - early)).max(now + PAUSE.0);
        Self { value, renewed_from, ends: Some(now + (life - MARGIN.min(life / 16))) }
    }

    /// A value that serves until the service refuses it.
    pub fn until_refused(value: T, now: LocalInstant) -> Self {
        Self { value, renewed_from: now + Duration::MAX, ends: None }
    }

    /// A value whose end only its source knows: it is asked again after `again`, and waited for after `limit`.
    pub fn asked_again(value: T, now: LocalInstant, again: Duration, limit: Duration) -> Self {
        Self { value, renewed_from: now + again, ends: Some(now + limit) }
    }
}

/// The rest of the life of credentials that end at a wall time. A wall clock that is wrong now, or jumps later, costs a load
/// for each request, or one refusal: the service decides what is good, and the rest is counted by a clock that does not jump.
pub fn left_until(end: SystemTime) -> Duration {
    end.duration_since(SystemClock.wall_time().into()).unwrap_or_default()
}

/// The reason for which a load gave nothing but time.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Broken(String);

impl From<Broken> for String {
    fn from(broken: Broken) -> Self {
        broken.0
    }
}

/// A load that is in flight, or whose error nobody has got yet.
type Loading<T, E> = Shared<BoxFuture<'static, Result<T, E>>>;

/// The credentials of one source. Requests that are given up leave a load to the next one; and while what is kept is good,
/// no request waits for a load, or fails with it.
pub struct Kept<T, E> {
    name: Arc<str>,
    state: Arc<Mutex<Loads<T, E>>>,
}

struct Loads<T, E> {
    held: Option<Held<T>>,
    loading: Option<Loading<T, E>>,
    /// The task of the load that is in flight. It ends without a word if its runtime does.
    task: Option<AbortHandle>,
}

impl<T, E> Loads<T, E> {
    fn is_loading(&self) -> bool {
        self.task.as_ref().is_some_and(|task| !task.is_finished())
    }
}

struct Held<T> {
    loaded: Loaded<T>,
    since: LocalInstant,
    /// The service has refused it. The next request waits for another.
    is_refused: bool,
}

/// The answer to a request that asks for credentials.
#[derive(Debug, PartialEq, Eq)]
enum Now<T> {
    /// It has these.
    Use(T),
    /// It has these, and a load is to be in flight.
    UseAndLoad(T),
    /// It waits for a load. If the load fails, it has these.
    Wait(Option<T>),
}

impl<T: Clone> Held<T> {
    fn has_ended(&self, now: LocalInstant) -> bool {
        self.loaded.ends.is_some_and(|ends| now >= ends)
    }

    fn now(&mut self, now: LocalInstant) -> Now<T> {
        let value = self.loaded.value.clone();
        if self.has_ended(now) {
            return Now::Wait(None);
        }
        if self.is_refused {
            // Only one request waits: the source may be down, and the refusal a mistake.
            (self.is_refused, self.loaded.renewed_from) = (false, now);
            return Now::Wait(Some(value));
        }
        if now < self.loaded.renewed_from { Now::Use(value) } else { Now::UseAndLoad(value) }
    }

    /// Notes a load that has failed, and returns the pause before the next.
    fn failed(&mut self, now: LocalInstant) -> Duration {
        let left = self.loaded.ends.map_or(PAUSE.1, |ends| ends.saturating_since(now) / 16);
        let pause = left.clamp(PAUSE.0, PAUSE.1);
        self.loaded.renewed_from = now + pause;
        pause
    }

    fn refused(&mut self, now: LocalInstant) -> bool {
        let is_old = now.saturating_since(self.since) >= YOUNG;
        self.is_refused |= is_old;
        is_old
    }
}

impl<T, E> Kept<T, E>
where
    T: Clone + Send + Sync + 'static,
    E: Clone + fmt::Display + From<Broken> + Send + Sync + 'static,
{
    /// Keeps the credentials that a log calls by this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), state: Arc::new(Mutex::new(Loads { held: None, loading: None, task: None })) }
    }

    /// Returns what is kept, or else the result of a load, which goes on when this request is given up. `load` is called if
    /// none is in flight.
    pub async fn get<F>(&self, load: impl FnOnce() -> F + Send) -> Result<T, E>
    where
        F: Future<Output = Result<Loaded<T>, E>> + Send + 'static,
    {
        let (loading, fallback) = {
            let mut state = self.state();
            let answer = state.held.as_mut().map_or(Now::Wait(None), |held| held.now(SystemClock.now()));
            match answer {
                Now::Use(value) => return Ok(value),
                Now::UseAndLoad(value) => {
                    if !state.is_loading() {
                        // It goes on by itself.
                        drop(self.begin(&mut state, load));
                    }
                    return Ok(value);
                }
                Now::Wait(fallback) => {
                    let unread = state.loading.clone().filter(|last| state.is_loading() || last.peek().is_none());
                    (unread.unwrap_or_else(|| self.begin(&mut state, load)), fallback)
                }
            }
        };
        let loaded = loading_credentials(loading).await;
        match (loaded, fallback) {
            (Err(_), Some(fallback)) => Ok(fallback),
            (loaded, _) => loaded,
        }
    }

    /// Notes that the service has refused what is kept: the next request waits for another. Returns `false` if what is kept
    /// has just been loaded.
    pub fn refused(&self) -> bool {
        self.state().held.as_mut().is_some_and(|held| held.refused(SystemClock.now()))
    }

    fn begin<F>(&self, state: &mut Loads<T, E>, load: impl FnOnce() -> F) -> Loading<T, E>
    where
        F: Future<Output = Result<Loaded<T>, E>> + Send + 'static,
    {
        let (kept, load) = (self.clone(), tokio::spawn(load()));
        let stop = load.abort_handle();
        let ended = tokio::spawn(async move {
            let loaded = match timeout(LOAD_LIMIT, load).await {
                Ok(Ok(loaded)) => loaded,
                Ok(Err(error)) => Err(Broken(format!("the load broke off: {error}")).into()),
                Err(_) => {
                    stop.abort();
                    Err(Broken(format!("the load took longer than {LOAD_LIMIT:?}")).into())
                }
            };
            kept.ended(loaded)
        });
        state.task = Some(ended.abort_handle());
        let broken = |error| Err(Broken(format!("the load broke off: {error}")).into());
        let loading = ended.map(move |ended| ended.unwrap_or_else(broken)).boxed().shared();
        state.loading = Some(loading.clone());
        loading
    }

    fn ended(&self, loaded: Result<Loaded<T>, E>) -> Result<T, E> {
        let (mut state, now) = (self.state(), SystemClock.now());
        state.task = None;
        let why = match loaded {
            Ok(loaded) => {
                let value = loaded.value.clone();
                (state.held, state.loading) = (Some(Held { loaded, since: now, is_refused: false }), None);
                return Ok(value);
            }
            Err(why) => why,
        };
        let is_good = state.held.as_mut().is_some_and(|held| {
            let (of, retry) = (&self.name, held.failed(now));
            tracing::warn!(%of, reason = %why, ?retry, "new credentials cannot be loaded yet");
            !held.has_ended(now)
        });
        if is_good {
            // Nobody waits for the error, and it says nothing about a later load.
            state.loading = None;
        }
        Err(why)
    }
}

impl<T, E> Kept<T, E> {
    /// Lets what is kept be old enough for a refusal to be about it.
    #[cfg(feature = "test-util")]
    pub fn make_older(&self) {
        if let Some(held) = &mut self.state().held {
            held.since = LocalInstant::default();
        }
    }

    fn state(&self) -> MutexGuard<'_, Loads<T, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T, E> Clone for Kept<T, E> {
    fn clone(&self) -> Self {
        Self { name: Arc::clone(&self.name), state: Arc::clone(&self.state) }
    }
}

// Written by hand, because what is kept is a secret.
impl<T, E> fmt::Debug for Kept<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("of", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
