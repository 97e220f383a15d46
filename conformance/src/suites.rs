//! The suites that every store and every lock must pass.

mod age;
mod calls;
mod clause;
mod effort;
mod fence;
mod lock;
mod race;
mod rewriting;
mod sequential;
mod store;

pub use effort::Effort;
pub use fence::{Duel, check_fence};
pub use lock::check_lock;
pub use store::check_store;
