//! Methods that every store has without implementing them.

use super::{ConditionalStore, ListedObject, Listing, StoreError};

/// Convenience methods that every [`ConditionalStore`] has. They use only that trait, and no store implements them.
pub trait ConditionalStoreExt: ConditionalStore {
    /// Returns all objects whose keys start with `prefix`, sorted by key.
    ///
    /// A listing is not a snapshot: its objects may never have coexisted. Each page is one request. Cancellation safe.
    ///
    /// # Errors
    ///
    /// The first error of a [page](ConditionalStore::list_page), or of a [`Listing`] that exceeds its limits.
    fn list(&self, prefix: &str) -> impl Future<Output = Result<Vec<ListedObject>, StoreError>> + Send {
        async move {
            let (mut listing, mut token) = (Listing::new(self.describe(prefix)), None);
            loop {
                let page = self.list_page(prefix, token.as_ref(), None).await?;
                page.objects.into_iter().try_for_each(|object| listing.add(object))?;
                let Some(next) = page.next else { return Ok(listing.sorted()) };
                listing.turn_to(&next)?;
                token = Some(next);
            }
        }
    }

    /// Removes every trace of an object, whatever its version. Succeeds if there is no object.
    ///
    /// Use it only for an object that nobody else has written and nobody will write again, such as a probe's. An object
    /// that is created at this key later may have the same versions. So an election never discards its lock.
    ///
    /// # Errors
    ///
    /// Any [`StoreErrorKind`](crate::StoreErrorKind).
    fn discard(&self, key: &str) -> impl Future<Output = Result<(), StoreError>> + Send {
        async move { self.delete(key, None).await }
    }
}

impl<S: ConditionalStore + ?Sized> ConditionalStoreExt for S {}
