//! The identities that sign requests. This store keeps them, and not the SDK's cache, which loads new ones ten seconds before
//! the end of the old, fails a request with the load, and learns of no refusal.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_s3::config::{ConfigBag, ResolveCachedIdentity, RuntimeComponents};
use aws_smithy_runtime_api::client::identity::{
    Identity, IdentityCachePartition, IdentityFuture, ResolveIdentity as _, SharedIdentityResolver,
};
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection_store_support::request::Words;
use leaderelection_store_support::request::kept::{Broken, Kept, Loaded, left_until};

/// The identity of one source of credentials.
type One = Kept<Identity, Unloaded>;

/// The identities of all stores: clients that are made of one another have one source, which is asked once.
static SHARED: LazyLock<Mutex<HashMap<IdentityCachePartition, Weak<One>>>> = LazyLock::new(Mutex::default);

/// The identities of one client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identities {
    kept: Arc<Mutex<HashMap<IdentityCachePartition, Arc<One>>>>,
    /// The source of credentials that keeps them itself.
    uncached: Option<IdentityCachePartition>,
}

impl Identities {
    /// Asks one source of credentials for each request, and keeps nothing of it.
    pub(crate) fn but_for(self, uncached: Option<IdentityCachePartition>) -> Self {
        Self { uncached, ..self }
    }

    /// Notes that the store has refused the credentials. Returns `true` if the next request has others, or the same from a load
    /// of its own.
    pub(crate) fn refused(&self) -> bool {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Each of them is told.
        kept.values().filter(|one| one.refused()).count() > 0
    }

    fn of(&self, source: IdentityCachePartition) -> Arc<One> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(kept.entry(source).or_insert_with(|| {
            let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
            shared.get(&source).and_then(Weak::upgrade).unwrap_or_else(|| {
                let one = Arc::new(Kept::new("the store of S3"));
                shared.retain(|_, one| one.strong_count() > 0);
                shared.insert(source, Arc::downgrade(&one));
                one
            })
        }))
    }
}

impl ResolveCachedIdentity for Identities {
    fn resolve_cached_identity<'a>(
        &'a self,
        resolver: SharedIdentityResolver,
        components: &'a RuntimeComponents,
        config: &'a ConfigBag,
    ) -> IdentityFuture<'a> {
        if self.uncached == Some(resolver.cache_partition()) {
            return IdentityFuture::new(async move { resolver.resolve_identity(components, config).await });
        }
        let (kept, components) = (self.of(resolver.cache_partition()), components.clone());
        let load = || async move {
            // The request's own settings cannot outlive it. Credentials do not depend on them.
            let loaded = resolver.resolve_identity(&components, &ConfigBag::base()).await;
            let identity = loaded.map_err(|error| Unloaded::Failed(error.into()))?;
            let life = identity.expiration().map(left_until);
            Ok(Loaded::valid_for(identity, SystemClock.now(), life))
        };
        IdentityFuture::new(async move { Ok(kept.get(load).await?) })
    }
}

/// The reason for which there are no credentials.
#[derive(Clone, Debug)]
pub(crate) enum Unloaded {
    Failed(Arc<dyn StdError + Send + Sync>),
    Broken(Broken),
}

impl From<Broken> for Unloaded {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl StdError for Unloaded {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Failed(error) => Some(&**error),
            Self::Broken(_) => None,
        }
    }
}

impl fmt::Display for Unloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => {
                // The first line of the SDK's error says nothing.
                let cause = error.downcast_ref::<CredentialsError>().and_then(StdError::source).unwrap_or(&**error);
                Words::of_error(cause).map_or(Ok(()), |words| write!(f, "{words}"))
            }
            Self::Broken(broken) => write!(f, "{broken}"),
        }
    }
}
