//! The suites that every store and every lock must pass (feature `conformance`).
//!
//! [`check_store`] holds a [`ConditionalStore`](crate::ConditionalStore) to its contract, [`check_lock`] an
//! [`ObjectStoreBasedLock`](crate::ObjectStoreBasedLock). Both panic with the name of the object, what
//! was done to it, and the clause of the contract that this breaks.
//!
//! What passes has not been proven right: races are run many times, and power is never cut. What fails
//! must not elect a leader.
//!
//! ```
//! use leaderelection::conformance::{Effort, check_lock, check_store};
//! use leaderelection::{MemoryLock, MemoryStore};
//!
//! # #[tokio::main]
//! # async fn main() {
//! let store = MemoryStore::new();
//! check_store(store.clone(), "conformance", Effort::default()).await;
//! check_lock(|key, identity| MemoryLock::new(store.clone(), key, identity), Effort::default()).await;
//! # }
//! ```

mod clause;
mod lock;
mod race;
mod rewriting;
mod sequential;
mod store;

pub use lock::check_lock;
pub use store::check_store;

use crate::clock::TokioClock;
use crate::patience::{self, Objection};

/// Repeats a call that is rejected, so that a store which limits rates can pass.
async fn patiently<T, E, A>(call: impl Fn() -> A) -> Result<T, E>
where
    E: Objection,
    A: Future<Output = Result<T, E>>,
{
    patience::patiently(&TokioClock::new(), call).await
}

/// How hard a suite tries.
///
/// A check makes some `3 * rounds * racers` requests. The default is for a store at hand; for a distant
/// or metered one, fewer rounds will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// How often each race is run. Default: 16.
    pub rounds: usize,
    /// How many writers compete in a race. Default: 64.
    pub racers: usize,
}

impl Default for Effort {
    fn default() -> Self {
        Self { rounds: 16, racers: 64 }
    }
}
