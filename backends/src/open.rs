//! One call from a URL to a lock.

use std::sync::Arc;

use leaderelection::implement::ConditionalStore;
use leaderelection::{ObjectLock, StoreError, unique_identity};

use crate::url::{Location, UrlError};

/// Opens the lock that a [URL](crate::url) names, for a candidate with an identity of its own.
/// [`with_identity`](ObjectLock::with_identity) gives it another one. Nothing is sent yet.
///
/// ```
/// use leaderelection::ObjectStoreBasedLock;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), leaderelection::StoreError> {
/// let lock = leaderelection_backends::open("file:///var/lib/my-service/scheduler").await?;
/// assert_eq!(lock.describe(), "file:///var/lib/my-service/scheduler");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`StoreErrorKind::Fatal`](leaderelection::StoreErrorKind::Fatal) if the URL names no lock, or if the environment's settings are
/// invalid.
pub async fn open(url: &str) -> Result<ObjectLock<Arc<dyn ConditionalStore>>, StoreError> {
    let location: Location = url.parse().map_err(UrlError::fatal)?;
    location.lock(unique_identity()).await
}
