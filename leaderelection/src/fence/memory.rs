//! A fence for data in the memory of one process.

use std::sync::atomic::{AtomicU64, Ordering};

use super::stale::StaleToken;
use crate::term::FencingToken;

/// Remembers the largest fencing token that a resource has seen, and refuses smaller ones.
///
/// Use it for a resource in one process. The check is one atomic operation without a lock, so many threads can share a
/// `Fence`.
///
/// The check protects a change only if both are one atomic step. Put the fence and the data behind one mutex:
///
/// ```
/// use std::sync::{Mutex, PoisonError};
/// use leaderelection::FencingToken;
/// use leaderelection::fence::{Fence, StaleToken};
///
/// #[derive(Default)]
/// struct Account {
///     fence: Fence,
///     balance: i64,
/// }
///
/// fn deposit(account: &Mutex<Account>, token: FencingToken, amount: i64) -> Result<i64, StaleToken> {
///     let mut account = account.lock().unwrap_or_else(PoisonError::into_inner);
///     account.fence.check(token)?;
///     account.balance += amount;
///     Ok(account.balance)
/// }
///
/// let account = Mutex::default();
/// let (first, second) = (FencingToken::new(1), FencingToken::new(2));
/// assert_eq!(deposit(&account, first, 10), Ok(10));
/// assert_eq!(deposit(&account, second, 10), Ok(20));
/// // A request of the first leader that arrives late.
/// let refused = deposit(&account, first, 10).unwrap_err();
/// assert_eq!((refused.token, refused.highest), (first, second));
/// ```
///
/// # Restarts
///
/// A `Fence` is in memory. If the data outlives the process, store the [`highest`](Self::highest) token together with
/// the data, in the same transaction or file. After a restart, create the fence with
/// [`starting_at`](Self::starting_at).
#[derive(Debug, Default)]
pub struct Fence {
    highest: AtomicU64,
}

impl Fence {
    /// Creates a fence that has seen no token, so that the first token passes.
    #[must_use]
    pub const fn new() -> Self {
        Self { highest: AtomicU64::new(0) }
    }

    /// Creates a fence that has seen `token`, for a resource that has stored its largest token and starts again.
    #[must_use]
    pub const fn starting_at(token: FencingToken) -> Self {
        Self { highest: AtomicU64::new(token.number()) }
    }

    /// Accepts a token that is at least as large as all tokens before it. From then on, smaller tokens are refused.
    ///
    /// # Errors
    ///
    /// [`StaleToken`] if the fence has seen a larger token. Then the resource must not change anything.
    pub fn check(&self, token: impl Into<FencingToken>) -> Result<(), StaleToken> {
        let token = token.into();
        let highest = self.highest.fetch_max(token.number(), Ordering::AcqRel);
        StaleToken::unless_highest(token, highest.into())
    }

    /// The largest token seen so far; 0 if there was none.
    #[must_use]
    pub fn highest(&self) -> FencingToken {
        self.highest.load(Ordering::Acquire).into()
    }
}
