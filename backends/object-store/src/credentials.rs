//! The credentials of a store, asked for again beside the requests that they sign.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection_store_support::request::kept::{Kept, Loaded};
use object_store::{CredentialProvider, Error, Result};

/// The time after which the source is asked again. It keeps what is not about to end.
const AGAIN: Duration = Duration::from_secs(10);

/// The time for which an answer serves while no other comes. `object_store` replaces what ends within four or five minutes.
const LIMIT: Duration = Duration::from_secs(3 * 60);

/// Credentials of a store that are loaded in the background. The crate `object_store` loads them in the way of a request,
/// some minutes before the end of the old ones, and a request fails with the load although the old ones are good.
///
/// ```ignore
/// let first = builder.clone().build()?;
/// let builder = builder.with_credentials(KeptCredentials::of(first.credentials().clone()));
/// ```
pub struct KeptCredentials<C> {
    source: Arc<dyn CredentialProvider<Credential = C>>,
    kept: Kept<Arc<C>, String>,
}

impl<C> KeptCredentials<C>
where
    C: Send + Sync + 'static,
{
    /// Keeps the credentials of `source`, which are those of a store that is built.
    #[must_use]
    pub fn of(source: Arc<dyn CredentialProvider<Credential = C>>) -> Arc<Self> {
        Arc::new(Self { source, kept: Kept::new("the store of object_store") })
    }
}

#[async_trait]
impl<C> CredentialProvider for KeptCredentials<C>
where
    C: Send + Sync + 'static,
{
    type Credential = C;

    async fn get_credential(&self) -> Result<Arc<C>> {
        let source = Arc::clone(&self.source);
        let load = || async move {
            let credential = source.get_credential().await.map_err(|error| error.to_string())?;
            Ok(Loaded::asked_again(credential, SystemClock.now(), AGAIN, LIMIT))
        };
        self.kept.get(load).await.map_err(|problem| Error::Generic { store: "credentials", source: problem.into() })
    }
}

// Written by hand, because what is kept is a secret.
impl<C> fmt::Debug for KeptCredentials<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptCredentials").finish_non_exhaustive()
    }
}
