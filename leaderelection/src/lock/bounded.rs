//! A limit on the time that one request may take, and locks and stores that keep to it.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::clock::{Clock, LocalInstant, SystemClock};
use crate::lock::action::{CREATE, READ, UPDATE};
use crate::lock::record::LeaderElectionRecord;
use crate::lock::{LockError, ObjectStoreBasedLock, VersionedRecord};
use crate::store::{
    ConditionalStore, ListedPage, PageToken, Precondition, StoreError, StoreErrorKind, Version, VersionedObject,
};

/// The time that one request may take, and the name of the setting with this time.
///
/// ```
/// use std::time::Duration;
/// use leaderelection::lock::TimeLimit;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let limit = TimeLimit::new(Duration::from_millis(2)).of_setting("--patience");
/// let error = limit.answer(std::future::pending::<()>()).await.unwrap_err();
/// assert!(error.to_string().starts_with("no answer within 2ms (--patience)"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TimeLimit {
    limit: Duration,
    setting: &'static str,
    clock: Arc<dyn Clock>,
}

impl TimeLimit {
    /// Creates a limit by the machine's clock. Messages call the limit `request_timeout`.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self { limit, setting: "request_timeout", clock: Arc::new(SystemClock) }
    }

    /// Names the setting that a reader of the message has to change to allow more time.
    #[must_use]
    pub fn of_setting(mut self, setting: &'static str) -> Self {
        self.setting = setting;
        self
    }

    /// This limit with another duration.
    pub(crate) fn of_duration(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Sets another clock than the machine's.
    #[must_use]
    pub fn on_clock(self, clock: impl Clock) -> Self {
        self.on_shared_clock(Arc::new(clock))
    }

    pub(crate) fn on_shared_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The longest time that a request may take.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.limit
    }

    /// Waits for the answer to `request`, whose time counts from now. An available answer wins, even if the
    /// time is over.
    ///
    /// # Errors
    ///
    /// [`NoAnswer`] when the time is over. The request is dropped then, and may still take effect.
    pub async fn answer<T>(&self, request: impl Future<Output = T>) -> Result<T, NoAnswer> {
        self.answer_since(self.clock.now(), request).await
    }

    /// Waits for the answer to `request`, whose time counts from `began`, a moment of the limit's clock.
    ///
    /// # Errors
    ///
    /// As for [`answer`](Self::answer).
    pub async fn answer_since<T>(&self, began: LocalInstant, request: impl Future<Output = T>) -> Result<T, NoAnswer> {
        let deadline = began + self.limit;
        // Declared before the request, so dropped after it.
        let mut silence = Silence(false);
        let mut request = pin!(request);
        let mut step = Step::Request;
        let watched = poll_fn(|context| {
            STEP.set(Step::Request);
            let polled = request.as_mut().poll(context);
            step = STEP.get();
            polled
        });
        tokio::select! {
            biased;
            answer = watched => Ok(answer),
            () = self.sleep_until(deadline) => {
                silence.begin(step);
                Err(NoAnswer { limit: self.limit, setting: self.setting, step })
            }
        }
    }

    /// Sets no timer before it is polled, so a request that is answered at once needs none.
    async fn sleep_until(&self, deadline: LocalInstant) {
        // Through the `Arc`, the sleep would be boxed once more.
        (*self.clock).sleep_until(deadline).await;
    }

    /// Waits for the answer of `lock`, whose time counts from `began`. Silence becomes the error of a lock whose request
    /// may still take effect.
    pub(crate) async fn ask<T>(
        &self,
        began: LocalInstant,
        action: &'static str,
        lock: &(impl ObjectStoreBasedLock + ?Sized),
        call: impl Future<Output = Result<T, LockError>>,
    ) -> Result<T, LockError> {
        let silent = |silence| Err(LockError::new(StoreErrorKind::Ambiguous, action, lock.describe(), silence));
        self.answer_since(began, call).await.unwrap_or_else(silent)
    }
}

thread_local! {
    /// The step in which the last poll of a request on this thread ended. A limit asks for it right after the poll, so
    /// that limits inside one another find the same step, and no request has to carry it.
    static STEP: Cell<Step> = const { Cell::new(Step::Request) };
}

/// The part of a request that takes time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Request,
    /// The credentials, with the name of their source.
    Credentials(&'static str),
}

thread_local! {
    /// A limit drops the request that it has waited for in vain, on this thread, now.
    static IN_VAIN: Cell<bool> = const { Cell::new(false) };
}

/// Returns `true` while a [`TimeLimit`] drops a request that was not answered in time. A part of the request can ask for it
/// in its `Drop`, and so tell silence from a request that nobody needs any more. A wait for
/// [credentials](loading_credentials) is no silence.
///
/// ```
/// use std::time::Duration;
/// use leaderelection::implement::is_given_up;
/// use leaderelection::lock::TimeLimit;
///
/// struct Connection;
///
/// impl Drop for Connection {
///     fn drop(&mut self) {
///         assert!(is_given_up());
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let request = async {
///     let _connection = Connection;
///     std::future::pending::<()>().await;
/// };
/// TimeLimit::new(Duration::from_millis(2)).answer(request).await.unwrap_err();
/// assert!(!is_given_up());
/// # }
/// ```
#[must_use]
pub fn is_given_up() -> bool {
    IN_VAIN.get()
}

/// The end of a wait for a request without an answer, until the request is dropped. A limit that was dropped itself, with
/// its request, ends nothing: another one may have given both up.
struct Silence(bool);

impl Silence {
    fn begin(&mut self, step: Step) {
        self.0 = step == Step::Request;
        IN_VAIN.set(self.0);
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        if self.0 {
            IN_VAIN.set(false);
        }
    }
}

/// Waits for credentials, which are not an answer of the store. If a [`TimeLimit`] around this call is over meanwhile,
/// its error blames the source of the credentials, and not the network.
///
/// ```
/// use std::time::Duration;
/// use leaderelection::implement::loading_credentials;
/// use leaderelection::lock::TimeLimit;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let request = loading_credentials(std::future::pending::<()>());
/// let error = TimeLimit::new(Duration::from_millis(2)).answer(request).await.unwrap_err();
/// assert!(error.to_string().starts_with("the credentials were not loaded within 2ms"));
/// # }
/// ```
pub async fn loading_credentials<T>(loading: impl Future<Output = T>) -> T {
    loading_credentials_of("the source of the credentials", loading).await
}

/// As [`loading_credentials`], with the name of the source that the error tells people to check.
pub async fn loading_credentials_of<T>(source: &'static str, loading: impl Future<Output = T>) -> T {
    let mut loading = pin!(loading);
    poll_fn(|context| {
        let polled = loading.as_mut().poll(context);
        if polled.is_pending() {
            STEP.set(Step::Credentials(source));
        }
        polled
    })
    .await
}

/// A request took longer than its [`TimeLimit`]. Its outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} within {limit:?} ({setting}); check {}, or allow more time",
    match *.step {
        Step::Request => "no answer",
        Step::Credentials(_) => "the credentials were not loaded",
    },
    match *.step {
        Step::Request => "the network and the endpoint",
        Step::Credentials(source) => source,
    }
)]
pub struct NoAnswer {
    limit: Duration,
    setting: &'static str,
    step: Step,
}

/// A lock or a store whose every call is answered within a [`TimeLimit`].
///
/// A call that takes longer fails with [`StoreErrorKind::Ambiguous`], for it may still take effect. The error's
/// cause is a [`NoAnswer`].
///
/// ```
/// use std::time::Duration;
/// use leaderelection::lock::{Bounded, TimeLimit};
/// use leaderelection::{MemoryLock, MemoryStore, ObjectStoreBasedLock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let lock = MemoryLock::new(MemoryStore::new(), "locks/scheduler", "onlooker");
/// let lock = Bounded::new(lock, TimeLimit::new(Duration::from_secs(10)));
/// assert!(lock.get().await?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Bounded<T> {
    inner: T,
    limit: TimeLimit,
}

impl<T> Bounded<T> {
    /// Bounds each call of `inner`.
    #[must_use]
    pub fn new(inner: T, limit: TimeLimit) -> Self {
        Self { inner, limit }
    }

    /// Returns the inner lock or store, whose calls are not bounded.
    #[must_use]
    pub fn get_ref(&self) -> &T {
        &self.inner
    }
}

#[async_trait]
impl<L: ObjectStoreBasedLock> ObjectStoreBasedLock for Bounded<L> {
    async fn get(&self) -> Result<Option<VersionedRecord>, LockError> {
        self.limit.ask(self.limit.clock.now(), READ, &self.inner, self.inner.get()).await
    }

    async fn create(&self, record: &LeaderElectionRecord) -> Result<Version, LockError> {
        self.limit.ask(self.limit.clock.now(), CREATE, &self.inner, self.inner.create(record)).await
    }

    async fn update(&self, record: &LeaderElectionRecord, expected: &Version) -> Result<Version, LockError> {
        self.limit.ask(self.limit.clock.now(), UPDATE, &self.inner, self.inner.update(record, expected)).await
    }

    fn identity(&self) -> &str {
        self.inner.identity()
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn max_lease_duration(&self) -> Duration {
        self.inner.max_lease_duration()
    }

    /// The store itself. Its calls are not bounded.
    fn object(&self) -> Option<(Arc<dyn ConditionalStore>, &str)> {
        self.inner.object()
    }

    fn objects(&self) -> Vec<(Arc<dyn ConditionalStore>, String)> {
        self.inner.objects()
    }

    fn parts_left_out(&self) -> Option<usize> {
        self.inner.parts_left_out()
    }
}

impl<S: ConditionalStore> Bounded<S> {
    async fn ask_for<T>(&self, key: &str, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.limit.answer(call).await.unwrap_or_else(|silence| Err(silence.of(&self.inner.describe(key))))
    }
}

impl NoAnswer {
    /// Creates the error of a store that did not answer about `object`. The name of the object is the text of
    /// [`describe`](ConditionalStore::describe).
    #[must_use]
    pub fn of(self, object: &str) -> StoreError {
        StoreError::new(StoreErrorKind::Ambiguous, format!("{object}: {self}"))
    }
}

#[async_trait]
impl<S: ConditionalStore> ConditionalStore for Bounded<S> {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.ask_for(key, self.inner.get(key)).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        self.ask_for(key, self.inner.put(key, body, precondition)).await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.ask_for(key, self.inner.delete(key, expected)).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        self.ask_for(prefix, self.inner.list_page(prefix, token, limit)).await
    }

    fn describe(&self, key: &str) -> String {
        self.inner.describe(key)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        self.inner.min_write_interval()
    }
}
