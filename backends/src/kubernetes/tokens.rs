//! Tokens that take longer to get than a request may take, such as those of a command that the kubeconfig names.

use std::fmt;
use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response};
use kube::Config;
use kube::client::middleware::AuthLayer;
use kube::client::{AuthError, Body, ConfigExt as _};
use leaderelection::clock::{Clock as _, SystemClock};
use tokio::task::spawn_blocking;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Layer as _, ServiceExt as _, service_fn};

use super::error;
use crate::request::kept::{Kept, Loaded};

/// The time after which kube is asked again. It knows the end of a token, reads a file once per minute, and runs a command a
/// minute before the end.
const AGAIN: Duration = Duration::from_secs(10);

/// The time after which a request waits for that answer.
const LIMIT: Duration = Duration::from_secs(60);

/// The configuration as its source has it now.
pub(crate) type Again = Arc<dyn Fn() -> BoxFuture<'static, Option<Config>> + Send + Sync>;

/// The same configuration each time. The files that it names are read anew, and its command runs anew.
pub(super) fn same(config: &Config) -> Again {
    let config = config.clone();
    Arc::new(move || Box::pin(ready(Some(config.clone()))))
}

type Headers = BoxCloneSyncService<Request<Body>, Response<()>, BoxError>;

/// The source of the header `Authorization`. Within its own requests, kube would run a command anew for each.
pub(super) struct Tokens {
    again: Again,
    /// The layer that kube gives to each request; `None` before its command has succeeded.
    headers: Arc<Mutex<Option<Headers>>>,
    /// kube reads the kubeconfig once, and keeps a token without an end for ever.
    is_refused: AtomicBool,
    kept: Kept<HeaderValue, String>,
}

impl Tokens {
    /// Takes over what a client would give to each request.
    pub(super) fn of(layer: Option<&AuthLayer>, again: Again) -> Self {
        let headers = Arc::new(Mutex::new(layer.map(of_layer)));
        Self { again, headers, is_refused: AtomicBool::new(false), kept: Kept::new("the store of Leases") }
    }

    /// Returns the header, or says why there is none.
    pub(super) async fn header(&self) -> Result<HeaderValue, String> {
        let (again, headers) = (Arc::clone(&self.again), Arc::clone(&self.headers));
        let load = || {
            let is_refused = self.is_refused.swap(false, Ordering::Relaxed);
            async move {
                let former = headers.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let present = match former {
                    Some(former) if !is_refused => former,
                    former => read_again(&again, former).await?,
                };
                let answer = present.clone().oneshot(Request::new(Body::empty())).await;
                let answer = answer.map_err(|error| in_words(&error))?;
                let header = answer.headers().get(AUTHORIZATION).cloned();
                let header = header.ok_or_else(|| "there is no token".to_owned())?;
                *headers.lock().unwrap_or_else(PoisonError::into_inner) = Some(present);
                Ok(Loaded::asked_again(header, SystemClock.now(), AGAIN, LIMIT))
            }
        };
        self.kept.get(load).await
    }

    /// Notes that the API server has refused the token. Returns `true` if the next request has another.
    pub(super) fn refused(&self) -> bool {
        let is_old = self.kept.refused();
        self.is_refused.fetch_or(is_old, Ordering::Relaxed);
        is_old
    }
}

/// Reads the configuration and its files again, and runs its command.
async fn read_again(again: &Again, former: Option<Headers>) -> Result<Headers, String> {
    let Some(config) = again().await else { return former.ok_or_else(|| "the kubeconfig cannot be read".to_owned()) };
    match spawn_blocking(move || config.auth_layer()).await {
        Ok(Ok(Some(layer))) => Ok(of_layer(&layer)),
        Ok(Ok(None)) => former.ok_or_else(|| "the user of the kubeconfig has no token".to_owned()),
        Ok(Err(kube::Error::Auth(error))) => Err(error::of_auth(&error)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

fn of_layer(layer: &AuthLayer) -> Headers {
    BoxCloneSyncService::new(layer.layer(service_fn(headers)))
}

/// Answers with the headers of the request.
async fn headers(request: Request<Body>) -> Result<Response<()>, BoxError> {
    let mut answer = Response::new(());
    *answer.headers_mut() = request.into_parts().0.headers;
    Ok(answer)
}

fn in_words(error: &BoxError) -> String {
    error.downcast_ref::<AuthError>().map_or_else(|| error.to_string(), error::of_auth)
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}
