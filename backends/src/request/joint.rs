//! One load for all requests that need its result, which goes on when each of them is given up.

use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use tokio::task::JoinError;

/// A load that is under way, on a task of its own.
pub(crate) type Loading<T> = Shared<BoxFuture<'static, T>>;

/// The last load of something, with what it was asked for. Without it, what takes longer to load than a request may take
/// would be loaded from the start by every request, and never be there.
pub(crate) struct JointLoad<W, T: Clone>(Mutex<Option<(W, Loading<T>)>>);

impl<W: PartialEq, T: Clone + Send + Sync + 'static> JointLoad<W, T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Joins the load of `wanted` that is under way, or whose result nobody has got yet; or else begins one. `broken` makes
    /// the result of a load whose task ended without one.
    pub(crate) fn join<F>(&self, wanted: W, load: impl FnOnce() -> F, broken: fn(JoinError) -> T) -> Loading<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((same, loading)) if *same == wanted && loading.peek().is_none() => loading.clone(),
            _ => {
                let loading = tokio::spawn(load()).map(move |ended| ended.unwrap_or_else(broken)).boxed().shared();
                *last = Some((wanted, loading.clone()));
                loading
            }
        }
    }
}
