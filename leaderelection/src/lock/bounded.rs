//! Request timeouts: a limit on the time of one request, and locks and stores with this limit on every call.

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

/// The longest time that one request may take, and the setting that error messages name.
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
    /// Creates a limit that the machine's clock measures. Error messages name the setting `request_timeout`.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self { limit, setting: "request_timeout", clock: Arc::new(SystemClock) }
    }

    /// Names the setting with which a user can allow more time. Error messages show this name.
    #[must_use]
    pub fn of_setting(mut self, setting: &'static str) -> Self {
        self.setting = setting;
        self
    }

    /// This limit with another duration.
    pub(crate) fn of_duration(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Measures the time with `clock` instead of the machine's clock.
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

    /// Waits for the answer to `request`. The limit counts from now. An answer that is already there is returned even
    /// if the time is over.
    ///
    /// # Errors
    ///
    /// [`NoAnswer`] when the time is over. Then the request is dropped, but may still take effect.
    pub async fn answer<T>(&self, request: impl Future<Output = T>) -> Result<T, NoAnswer> {
        self.answer_since(self.clock.now(), request).await
    }

    /// Waits for the answer to `request`. The limit counts from `began`, which must be a time of the limit's clock.
    ///
    /// # Errors
    ///
    /// As for [`answer`](Self::answer).
    pub async fn answer_since<T>(&self, began: LocalInstant, request: impl Future<Output = T>) -> Result<T, NoAnswer> {
        let deadline = began + self.limit;
        // Declared before the request, so dropped after it: the request's own `Drop` may call `is_given_up`.
        let mut dropping = DroppingTimedOut(false);
        let mut request = pin!(request);
        let mut step = Step::Answer;
        let watched = poll_fn(|context| {
            STEP.set(Step::Answer);
            let polled = request.as_mut().poll(context);
            step = STEP.get();
            polled
        });
        tokio::select! {
            biased;
            answer = watched => Ok(answer),
            () = self.sleep_until(deadline) => {
                dropping.begin(step);
                Err(NoAnswer { limit: self.limit, setting: self.setting, step })
            }
        }
    }

    /// Sets a timer only when this future is first polled, so a request that is answered at once needs none.
    async fn sleep_until(&self, deadline: LocalInstant) {
        // If called through the `Arc`, the future would be boxed twice.
        (*self.clock).sleep_until(deadline).await;
    }

    /// Waits for the answer to `call`, a request to `lock`. The limit counts from `began`. A timeout becomes an
    /// `Ambiguous` error of the lock, because the request may still take effect.
    pub(crate) async fn ask<T>(
        &self,
        began: LocalInstant,
        action: &'static str,
        lock: &(impl ObjectStoreBasedLock + ?Sized),
        call: impl Future<Output = Result<T, LockError>>,
    ) -> Result<T, LockError> {
        let timed_out = |error| Err(LockError::new(StoreErrorKind::Ambiguous, action, lock.describe(), error));
        self.answer_since(began, call).await.unwrap_or_else(timed_out)
    }
}

thread_local! {
    /// The step of the request that was last polled on this thread. A limit reads the step right after it has polled
    /// its request. So an outer limit finds the same step as an inner one, and no request has to carry its step.
    static STEP: Cell<Step> = const { Cell::new(Step::Answer) };
}

/// What a request is waiting for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    /// The store's answer.
    #[default]
    Answer,
    /// The credentials, from the source with this name.
    Credentials(&'static str),
}

impl Step {
    /// What did not happen in time.
    fn failure(self) -> &'static str {
        match self {
            Self::Answer => "no answer",
            Self::Credentials(_) => "the credentials were not loaded",
        }
    }

    /// What people should check.
    fn suspect(self) -> &'static str {
        match self {
            Self::Answer => "the network and the endpoint",
            Self::Credentials(source) => source,
        }
    }
}

thread_local! {
    /// `true` while a limit on this thread drops a request that timed out.
    static IS_DROPPING_TIMED_OUT: Cell<bool> = const { Cell::new(false) };
}

/// Returns `true` while a [`TimeLimit`] drops a request that the store did not answer in time.
///
/// With this, the `Drop` of a connection can tell a timeout from the end of a request that nobody needs any more. If
/// the request was still [loading credentials](loading_credentials) when it timed out, the result is `false`.
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
    IS_DROPPING_TIMED_OUT.get()
}

/// Keeps [`IS_DROPPING_TIMED_OUT`] set from a timeout until the request has been dropped; `true` if this guard has set
/// it. The dropped request may contain inner limits, which have not timed out: their guards do not clear the flag.
struct DroppingTimedOut(bool);

impl DroppingTimedOut {
    fn begin(&mut self, step: Step) {
        self.0 = step == Step::Answer;
        IS_DROPPING_TIMED_OUT.set(self.0);
    }
}

impl Drop for DroppingTimedOut {
    fn drop(&mut self) {
        if self.0 {
            IS_DROPPING_TIMED_OUT.set(false);
        }
    }
}

/// Waits for credentials, as a step of a request. If the request's [`TimeLimit`] ends meanwhile, the error tells people
/// to check the source of the credentials instead of the network.
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

/// Does the same as [`loading_credentials`]. The error tells people to check `source`.
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

/// The error of a request that took longer than its [`TimeLimit`]. The outcome of the request is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} within {limit:?} ({setting}); check {}, or allow more time", .step.failure(), .step.suspect())]
pub struct NoAnswer {
    limit: Duration,
    setting: &'static str,
    step: Step,
}

/// A lock or a store with a [`TimeLimit`] on every call.
///
/// A call that takes longer fails with [`StoreErrorKind::Ambiguous`], because it may still take effect. The error of a
/// lock has a [`NoAnswer`] as its source. The error of a store only contains the text of the `NoAnswer`.
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
    /// Limits the time of each call of `inner`.
    #[must_use]
    pub fn new(inner: T, limit: TimeLimit) -> Self {
        Self { inner, limit }
    }

    /// Returns the inner lock or store, whose calls have no limit.
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

    /// The store itself. Its calls have no limit.
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
        self.limit.answer(call).await.unwrap_or_else(|error| Err(error.of(&self.inner.describe(key))))
    }
}

impl NoAnswer {
    /// Creates the error of a store that did not answer a request for `object`, which is a name from
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
