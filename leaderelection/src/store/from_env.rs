//! Stores that take their settings from the environment.

use async_trait::async_trait;

use super::{ConditionalStore, StoreError};

/// A store that a program opens with only the name of a bucket or a container, or the path of a directory. Everything
/// else comes from the environment, where the store's own tools find it, too.
///
/// [`ObjectLock::from_env`](crate::ObjectLock::from_env) opens a lock in such a store. A
/// [session](crate::Session) needs the store itself.
#[async_trait]
pub trait FromEnv: ConditionalStore + Sized {
    /// Opens the store in `place`. Nothing is sent to the store yet.
    ///
    /// Cancellation safe: a future that is dropped leaves nothing behind.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`](super::StoreErrorKind::Fatal) if `place` or a setting of the environment is invalid.
    async fn from_env(place: &str) -> Result<Self, StoreError>;
}
