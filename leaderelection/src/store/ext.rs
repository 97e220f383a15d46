//! What every store can do by the methods that it has to have.

use super::{ConditionalStore, ListedObject, Listing, StoreError};

/// Conveniences on every [`ConditionalStore`]. Nobody implements them.
pub trait ConditionalStoreExt: ConditionalStore {
    /// Returns all objects whose keys start with `prefix`, sorted by key.
    ///
    /// A listing is no snapshot: its objects may never have existed together. Each page is one request. Cancellation safe.
    ///
    /// # Errors
    ///
    /// The first error of a [page](ConditionalStore::list_page), and that of a [`Listing`] without an end.
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
    /// Only for an object that the caller alone has written, and that nobody will write again, such as those of a
    /// probe: versions of an object that is created at this key later may repeat earlier ones. No election discards
    /// its lock.
    ///
    /// # Errors
    ///
    /// Any [`StoreErrorKind`](crate::StoreErrorKind).
    fn discard(&self, key: &str) -> impl Future<Output = Result<(), StoreError>> + Send {
        async move { self.delete(key, None).await }
    }
}

impl<S: ConditionalStore + ?Sized> ConditionalStoreExt for S {}
