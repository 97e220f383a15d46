//! A fence that stays passed while a request works.

use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use super::stale::StaleToken;

/// The largest token that has been seen, locked for reading by each request that has shown it and is not done.
///
/// The lock is fair: a larger token waits for those inside, and nobody overtakes it.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate {
    highest: Arc<RwLock<u64>>,
}

/// The presence of one request. Larger tokens wait until it is dropped.
pub(super) type Inside = OwnedRwLockReadGuard<u64>;

impl Gate {
    pub(super) fn starting_at(token: u64) -> Self {
        Self { highest: Arc::new(RwLock::new(token)) }
    }

    /// Waits until no request with a smaller token is inside. A caller that is dropped meanwhile has changed nothing.
    pub(super) async fn enter(&self, token: u64) -> Result<Inside, StaleToken> {
        let highest = Arc::clone(&self.highest).read_owned().await;
        StaleToken::unless_highest(token, *highest)?;
        if token == *highest {
            return Ok(highest);
        }
        drop(highest);
        let mut highest = Arc::clone(&self.highest).write_owned().await;
        StaleToken::unless_highest(token, *highest)?;
        *highest = token;
        Ok(highest.downgrade())
    }
}
