//! A fence in memory.

use std::sync::atomic::{AtomicU64, Ordering};

use super::stale::StaleToken;

/// The largest fencing token that a resource has seen. Smaller tokens are refused.
///
/// For a resource that lives in one process. The check is one atomic operation without a lock, so many threads can
/// share a `Fence`.
///
/// The check protects only what happens in one step with it. Where a change takes longer than one instruction, one
/// mutex guards the fence and the data:
///
/// ```
/// use std::sync::{Mutex, PoisonError};
/// use leaderelection::fence::{Fence, StaleToken};
///
/// #[derive(Default)]
/// struct Account {
///     fence: Fence,
///     balance: i64,
/// }
///
/// fn deposit(account: &Mutex<Account>, token: u64, amount: i64) -> Result<i64, StaleToken> {
///     let mut account = account.lock().unwrap_or_else(PoisonError::into_inner);
///     account.fence.check(token)?;
///     account.balance += amount;
///     Ok(account.balance)
/// }
///
/// let account = Mutex::default();
/// assert_eq!(deposit(&account, 1, 10), Ok(10));
/// assert_eq!(deposit(&account, 2, 10), Ok(20));
/// // A request of the first leader that was held up on its way.
/// let refused = deposit(&account, 1, 10).unwrap_err();
/// assert_eq!((refused.token, refused.highest), (1, 2));
/// ```
///
/// # Restarts
///
/// A `Fence` is in memory. A resource whose data outlives the process stores the [`highest`](Self::highest) token
/// together with the data, in the same transaction or file, and begins again with [`starting_at`](Self::starting_at).
#[derive(Debug, Default)]
pub struct Fence {
    highest: AtomicU64,
}

impl Fence {
    /// A fence that has seen no token, so that every token passes.
    #[must_use]
    pub const fn new() -> Self {
        Self::starting_at(0)
    }

    /// A fence that has seen `token`: for a resource that has stored its highest token and starts again.
    #[must_use]
    pub const fn starting_at(token: u64) -> Self {
        Self { highest: AtomicU64::new(token) }
    }

    /// Lets a token pass that is at least as large as all tokens before, and refuses smaller tokens from then on.
    ///
    /// # Errors
    ///
    /// [`StaleToken`] if the fence has seen a larger token. The resource must then change nothing.
    pub fn check(&self, token: u64) -> Result<(), StaleToken> {
        let highest = self.highest.fetch_max(token, Ordering::AcqRel);
        StaleToken::unless_highest(token, highest)
    }

    /// The largest token seen so far; 0 if there was none.
    #[must_use]
    pub fn highest(&self) -> u64 {
        self.highest.load(Ordering::Acquire)
    }
}
