//! Tokens that take longer to get than a request may take.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::error::{Error, ErrorKind};
use leaderelection::lock::loading_credentials;

use crate::request::joint::JointLoad;

/// A credential that still gets its token when the request that asked for it is given up.
pub(super) struct Outliving {
    credential: Arc<dyn TokenCredential>,
    /// The last load, with its scopes.
    last: JointLoad<Vec<String>, Result<AccessToken, String>>,
}

impl Outliving {
    pub(super) fn new(credential: Arc<dyn TokenCredential>) -> Self {
        Self { credential, last: JointLoad::new() }
    }
}

#[async_trait]
impl TokenCredential for Outliving {
    async fn get_token(
        &self,
        scopes: &[&str],
        _options: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        let credential = Arc::clone(&self.credential);
        let wanted: Vec<String> = scopes.iter().map(|&scope| scope.to_owned()).collect();
        let scopes = wanted.clone();
        let load = || async move {
            let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
            // The options are those of the request, and cannot outlive it.
            credential.get_token(&scopes, None).await.map_err(|error| error.to_string())
        };
        loading_credentials(self.last.join(wanted, load, |error| Err(error.to_string())))
            .await
            .map_err(|problem| Error::with_message(ErrorKind::Credential, problem))
    }
}

impl fmt::Debug for Outliving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outliving").finish_non_exhaustive()
    }
}
