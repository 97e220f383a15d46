//! Credentials that take longer to load than a request may take.

use aws_sdk_s3::config::{ConfigBag, IdentityCache, ResolveCachedIdentity, RuntimeComponents, SharedIdentityCache};
use aws_smithy_runtime_api::client::identity::{IdentityFuture, SharedIdentityResolver};
use leaderelection::lock::loading_credentials;

/// A cache whose loads continue when the request that began them is given up. Without it, credentials that take longer
/// than a request may take would be loaded from the start by every request, and never be there.
#[derive(Debug)]
pub(super) struct OutlivingCache(SharedIdentityCache);

impl OutlivingCache {
    /// Takes over the client's cache, or creates the SDK's usual one. All calls of that cache share one load.
    pub(super) fn around(cache: Option<SharedIdentityCache>) -> Self {
        Self(cache.unwrap_or_else(|| IdentityCache::lazy().build()))
    }
}

impl ResolveCachedIdentity for OutlivingCache {
    fn resolve_cached_identity<'a>(
        &'a self,
        resolver: SharedIdentityResolver,
        components: &'a RuntimeComponents,
        _config: &'a ConfigBag,
    ) -> IdentityFuture<'a> {
        let (cache, components) = (self.0.clone(), components.clone());
        let loading = tokio::spawn(async move {
            // The request's own settings cannot outlive it. Credentials do not depend on them.
            cache.resolve_cached_identity(resolver, &components, &ConfigBag::base()).await
        });
        IdentityFuture::new(async { loading_credentials(loading).await? })
    }
}
