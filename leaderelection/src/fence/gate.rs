//! A fence that keeps larger tokens waiting while a request with a smaller one is handled.

use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use super::stale::StaleToken;
use crate::term::FencingToken;

/// The largest token so far, in a read-write lock. A request holds a read lock until it is done, and a larger token
/// takes the write lock.
///
/// The lock is fair: while a larger token waits for the requests before it, later requests queue behind it.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate {
    highest: Arc<RwLock<FencingToken>>,
}

/// Admits one request. Larger tokens wait until the permit is dropped.
pub(super) type Permit = OwnedRwLockReadGuard<FencingToken>;

impl Gate {
    pub(super) fn starting_at(token: FencingToken) -> Self {
        Self { highest: Arc::new(RwLock::new(token)) }
    }

    /// Waits until no request with a smaller token has a permit. Fails if there was a larger token. Cancellation safe.
    pub(super) async fn enter(&self, token: FencingToken) -> Result<Permit, StaleToken> {
        let highest = Arc::clone(&self.highest).read_owned().await;
        StaleToken::unless_highest(token, *highest)?;
        if token == *highest {
            return Ok(highest);
        }
        drop(highest);
        let mut highest = Arc::clone(&self.highest).write_owned().await;
        // A larger token may have come during the wait.
        StaleToken::unless_highest(token, *highest)?;
        *highest = token;
        Ok(highest.downgrade())
    }
}
