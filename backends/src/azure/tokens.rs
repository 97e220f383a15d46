//! Tokens of Entra ID, kept for the requests of a store.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::error::{Error, ErrorKind};
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Request, StatusCode};
use leaderelection::clock::{Clock as _, SystemClock};

use crate::request::kept::{Kept, Loaded};

/// Tokens by their scopes.
type ByScopes = HashMap<Vec<String>, Kept<AccessToken, String>>;

/// A credential whose tokens are kept. `azure_identity` gets a new one five minutes before the end of the old, in the way of a
/// request, which fails with it.
#[derive(Clone)]
pub(super) struct Tokens {
    credential: Arc<dyn TokenCredential>,
    kept: Arc<Mutex<ByScopes>>,
}

impl Tokens {
    pub(super) fn of(credential: Arc<dyn TokenCredential>) -> Self {
        Self { credential, kept: Arc::default() }
    }

    fn kept(&self) -> MutexGuard<'_, ByScopes> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl TokenCredential for Tokens {
    async fn get_token(
        &self,
        scopes: &[&str],
        _options: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        let credential = Arc::clone(&self.credential);
        let scopes: Vec<String> = scopes.iter().map(|&scope| scope.to_owned()).collect();
        let kept = self.kept().entry(scopes.clone()).or_insert_with(|| Kept::new("the store of Azure")).clone();
        let load = || async move {
            let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
            // The options are those of the request, and cannot outlive it.
            let token = credential.get_token(&scopes, None).await.map_err(|error| error.to_string())?;
            let life = SystemTime::from(token.expires_on).duration_since(SystemTime::now()).unwrap_or_default();
            Ok(Loaded::valid_for(token, SystemClock.now(), Some(life)))
        };
        kept.get(load).await.map_err(|problem| Error::with_message(ErrorKind::Credential, problem))
    }
}

/// The service has refused a token, and the next request gets another.
#[derive(Debug, thiserror::Error)]
#[error("the service refuses the token")]
pub(super) struct LoadedAnew;

/// Sees the answers of the service to the requests with these tokens.
#[async_trait]
impl Policy for Tokens {
    async fn send(&self, context: &Context, request: &mut Request, next: &[Arc<dyn Policy>]) -> PolicyResult {
        let Some((first, rest)) = next.split_first() else {
            return Err(Error::with_message(ErrorKind::Other, "there is no transport"));
        };
        let answer = first.send(context, request, rest).await?;
        let is_refused = answer.status() == StatusCode::Unauthorized;
        // Each of them is told.
        if is_refused && self.kept().values().filter(|kept| kept.refused()).count() > 0 {
            return Err(Error::new(ErrorKind::Credential, LoadedAnew));
        }
        Ok(answer)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}
