//! The suites that every store and every lock must pass.

mod deleting;
mod effort;
mod fence;
mod listings;
mod lock;
mod rewriting;
mod run;
mod sequential;
mod store;

pub use effort::Effort;
pub use fence::{Duel, check_fence};
pub use lock::check_lock;
pub use store::check_store;
