//! Credentials that take longer to load than a request may take.

use aws_sdk_s3::config::{ConfigBag, IdentityCache, ResolveCachedIdentity, RuntimeComponents, SharedIdentityCache};
use aws_smithy_runtime_api::client::identity::{
    IdentityCachePartition, IdentityFuture, ResolveIdentity as _, SharedIdentityResolver,
};
use leaderelection::lock::loading_credentials;

/// A cache whose loads continue when the request that began them is given up. Without it, credentials that take longer
/// than a request may take would be loaded from the start by every request, and never be there.
#[derive(Debug)]
pub(super) struct OutlivingCache {
    cache: SharedIdentityCache,
    /// The source of credentials that keeps them itself.
    uncached: Option<IdentityCachePartition>,
}

impl OutlivingCache {
    /// Takes over the client's cache, or creates the SDK's usual one. All calls of that cache share one load.
    pub(super) fn around(cache: Option<SharedIdentityCache>) -> Self {
        Self { cache: cache.unwrap_or_else(|| IdentityCache::lazy().build()), uncached: None }
    }

    /// Asks one source of credentials for each request, and keeps nothing of it.
    pub(super) fn but_for(self, uncached: Option<IdentityCachePartition>) -> Self {
        Self { uncached, ..self }
    }
}

impl ResolveCachedIdentity for OutlivingCache {
    fn resolve_cached_identity<'a>(
        &'a self,
        resolver: SharedIdentityResolver,
        components: &'a RuntimeComponents,
        config: &'a ConfigBag,
    ) -> IdentityFuture<'a> {
        if self.uncached == Some(resolver.cache_partition()) {
            return IdentityFuture::new(async move { resolver.resolve_identity(components, config).await });
        }
        let (cache, components) = (self.cache.clone(), components.clone());
        let loading = tokio::spawn(async move {
            // The request's own settings cannot outlive it. Credentials do not depend on them.
            cache.resolve_cached_identity(resolver, &components, &ConfigBag::base()).await
        });
        IdentityFuture::new(async { loading_credentials(loading).await? })
    }
}
