//! Tokens that take longer to get than a request may take.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::error::{Error, ErrorKind};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use leaderelection::lock::loading_credentials;

type Loading = Shared<BoxFuture<'static, Result<AccessToken, String>>>;

/// A credential that still gets its token when the request that asked for it is given up. Without it, a token that
/// takes longer than a request may take would be got from the start by every request, and never be there.
pub(super) struct Outliving {
    credential: Arc<dyn TokenCredential>,
    /// The last load, with its scopes.
    last: Mutex<Option<(Vec<String>, Loading)>>,
}

impl Outliving {
    pub(super) fn new(credential: Arc<dyn TokenCredential>) -> Self {
        Self { credential, last: Mutex::default() }
    }

    /// Joins the load that is under way, or whose token nobody has got yet; or else begins one.
    fn load(&self, scopes: &[&str]) -> Loading {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((same, loading)) if same == scopes && loading.peek().is_none() => loading.clone(),
            _ => {
                let (credential, scopes) = (Arc::clone(&self.credential), scopes.iter().map(|&scope| scope.to_owned()));
                let scopes: Vec<String> = scopes.collect();
                let wanted = scopes.clone();
                let task = tokio::spawn(async move {
                    let scopes: Vec<&str> = wanted.iter().map(String::as_str).collect();
                    // The options are those of the request, and cannot outlive it.
                    credential.get_token(&scopes, None).await.map_err(|error| error.to_string())
                });
                let loading = task.map(|ended| ended.unwrap_or_else(|error| Err(error.to_string()))).boxed().shared();
                *last = Some((scopes, loading.clone()));
                loading
            }
        }
    }
}

#[async_trait]
impl TokenCredential for Outliving {
    async fn get_token(
        &self,
        scopes: &[&str],
        _options: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        loading_credentials(self.load(scopes))
            .await
            .map_err(|problem| Error::with_message(ErrorKind::Credential, problem))
    }
}

impl fmt::Debug for Outliving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outliving").finish_non_exhaustive()
    }
}
