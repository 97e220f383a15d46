//! A fence that stays passed while a request works.

use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use super::stale::StaleToken;
use crate::term::FencingToken;

/// The largest token that has been seen, locked for reading by each request that has shown it and is not done.
///
/// The lock is fair: a larger token waits for those inside, and nobody overtakes it.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate {
    highest: Arc<RwLock<FencingToken>>,
}

/// The presence of one request. Larger tokens wait until it is dropped.
pub(super) type Inside = OwnedRwLockReadGuard<FencingToken>;

impl Gate {
    pub(super) fn starting_at(token: FencingToken) -> Self {
        Self { highest: Arc::new(RwLock::new(token)) }
    }

    /// Waits until no request with a smaller token is inside. A caller that is dropped meanwhile has changed nothing.
    pub(super) async fn enter(&self, token: FencingToken) -> Result<Inside, StaleToken> {
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
