//! Tokens of Entra ID, kept for the requests of a store.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::error::{Error, ErrorKind};
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Request, StatusCode};
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection_store_support::request::kept::{Kept, Loaded, left_until};

/// Tokens by their scopes.
type ByScopes = HashMap<Vec<String>, Kept<AccessToken, String>>;

/// A credential whose tokens are kept. `azure_identity` gets a new one five minutes before the end of the old, in the way of a
/// request, which fails with it.
#[derive(Clone)]
pub(crate) struct Tokens {
    credential: Arc<dyn TokenCredential>,
    kept: Arc<Mutex<ByScopes>>,
}

impl Tokens {
    pub(crate) fn of(credential: Arc<dyn TokenCredential>) -> Self {
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
            let life = left_until(token.expires_on.into());
            Ok(Loaded::valid_for(token, SystemClock.now(), Some(life)))
        };
        kept.get(load).await.map_err(|problem| Error::with_message(ErrorKind::Credential, problem))
    }
}

/// The service has refused a token, and the next request gets another.
#[derive(Debug, thiserror::Error)]
#[error("the service refuses the token")]
pub(crate) struct LoadedAnew;

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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use azure_core::http::headers::Headers;
    use azure_core::http::{AsyncRawResponse, Method};
    use azure_core::time::{Duration, OffsetDateTime};

    use super::*;

    const SCOPES: [&str; 1] = ["scope"];

    /// Tokens, each with its number, that end after this time.
    #[derive(Debug)]
    struct Numbered(AtomicUsize, Duration);

    #[async_trait]
    impl TokenCredential for Numbered {
        async fn get_token(&self, _: &[&str], _: Option<TokenRequestOptions<'_>>) -> azure_core::Result<AccessToken> {
            let number = self.0.fetch_add(1, Ordering::SeqCst) + 1;
            Ok(AccessToken::new(format!("token-{number}"), OffsetDateTime::now_utc() + self.1))
        }
    }

    /// A service that refuses all tokens.
    #[derive(Debug)]
    struct Refusing;

    #[async_trait]
    impl Policy for Refusing {
        async fn send(&self, _: &Context, _: &mut Request, _: &[Arc<dyn Policy>]) -> PolicyResult {
            Ok(AsyncRawResponse::from_bytes(StatusCode::Unauthorized, Headers::new(), Vec::new()))
        }
    }

    fn numbered(life: Duration) -> Tokens {
        Tokens::of(Arc::new(Numbered(AtomicUsize::new(0), life)))
    }

    async fn secret(tokens: &Tokens) -> String {
        tokens.get_token(&SCOPES, None).await.unwrap().token.secret().to_owned()
    }

    #[tokio::test]
    async fn a_refused_token_is_replaced_unless_it_has_just_been_got() {
        let tokens = numbered(Duration::hours(1));
        let is_loaded_anew = async || {
            let mut request = Request::new("https://account.blob.core.windows.net/".parse().unwrap(), Method::Get);
            let answer = tokens.send(&Context::new(), &mut request, &[Arc::new(Refusing)]).await;
            answer.is_err_and(|error| error.downcast_ref::<LoadedAnew>().is_some())
        };
        assert_eq!(secret(&tokens).await, "token-1");
        assert!(!is_loaded_anew().await);
        assert_eq!(secret(&tokens).await, "token-1");
        tokens.kept().values().for_each(Kept::make_older);
        assert!(is_loaded_anew().await);
        assert_eq!(secret(&tokens).await, "token-2");
    }

    /// The wall clock may be hours ahead of the service's, or behind it.
    #[tokio::test]
    async fn a_wall_clock_that_is_wrong_leaves_no_request_without_a_token() {
        let ahead = numbered(Duration::hours(-2));
        assert_eq!([secret(&ahead).await, secret(&ahead).await], ["token-1", "token-2"]);
        let behind = numbered(Duration::hours(9));
        assert_eq!([secret(&behind).await, secret(&behind).await], ["token-1", "token-1"]);
    }
}
