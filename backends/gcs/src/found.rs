//! Google's default credentials, found anew after the service or their own source has refused them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use google_cloud_auth::build_errors::Error as Unfit;
use google_cloud_auth::credentials::{Builder, CacheableResource, Credentials, CredentialsProvider};
use google_cloud_auth::errors::CredentialsError;
use http::{Extensions, HeaderMap};
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::implement::loading_credentials;

/// Credentials that were found less than this ago are not the reason of a refusal.
const YOUNG: Duration = Duration::from_secs(3);

/// The credentials that the environment, the files of `gcloud` or the machine give. The crate keeps a token, and gets the next
/// one minutes before its end; but it reads a file once, and never asks again after an error that looks final.
#[derive(Clone, Debug)]
pub(crate) struct Found(Arc<Mutex<FoundCredentials>>);

#[derive(Debug)]
struct FoundCredentials {
    credentials: Credentials,
    since: LocalInstant,
    /// Those that are to replace the others once they have a token.
    next: Option<Credentials>,
}

impl Found {
    /// Looks for the credentials.
    pub(crate) fn new() -> Result<Self, Unfit> {
        let (credentials, since) = (Builder::default().build()?, SystemClock.now());
        Ok(Self(Arc::new(Mutex::new(FoundCredentials { credentials, since, next: None }))))
    }

    /// Looks for others after a refusal. Returns `false` if these have just been found.
    pub(crate) fn refused(&self) -> bool {
        let (mut state, now) = (self.state(), SystemClock.now());
        if now.saturating_since(state.since) < YOUNG {
            return false;
        }
        state.since = now;
        match Builder::default().build() {
            Ok(next) => state.next = Some(next),
            Err(error) => {
                let of = "the store of Google";
                tracing::warn!(of, reason = %error, retry = ?YOUNG, "new credentials cannot be loaded yet");
            }
        }
        true
    }

    fn state(&self) -> MutexGuard<'_, FoundCredentials> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CredentialsProvider for Found {
    async fn headers(&self, extensions: Extensions) -> Result<CacheableResource<HeaderMap>, CredentialsError> {
        let next = self.state().next.clone();
        if let Some(next) = next {
            let headers = loading_credentials(next.headers(Extensions::new())).await;
            let mut state = self.state();
            state.next = None;
            if headers.is_ok() {
                state.credentials = next;
                return headers;
            }
        }
        let credentials = self.state().credentials.clone();
        let headers = loading_credentials(credentials.headers(extensions)).await;
        if headers.as_ref().is_err_and(|error| !error.is_transient()) {
            self.refused();
        }
        headers
    }

    async fn universe_domain(&self) -> Option<String> {
        let credentials = self.state().credentials.clone();
        credentials.universe_domain().await
    }
}
