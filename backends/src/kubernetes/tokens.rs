//! Tokens that take longer to get than a request may take, such as those of a command that the kubeconfig names.

use std::fmt;

use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response};
use kube::client::middleware::AuthLayer;
use kube::client::{AuthError, Body};
use leaderelection::lock::loading_credentials;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Layer as _, ServiceExt as _, service_fn};

use super::error;
use crate::request::joint::JointLoad;

/// The source of the header `Authorization`. A request that is given up leaves the token to the next one. Within its own
/// requests, the client would run the command anew for each.
pub(super) struct Tokens {
    headers: BoxCloneSyncService<Request<Body>, Response<()>, BoxError>,
    last: JointLoad<(), Result<HeaderValue, String>>,
}

impl Tokens {
    /// Takes over what a client would give to each request.
    pub(super) fn of(layer: &AuthLayer) -> Self {
        Self { headers: BoxCloneSyncService::new(layer.layer(service_fn(headers))), last: JointLoad::new() }
    }

    /// Returns the header, or says why there is none.
    pub(super) async fn header(&self) -> Result<HeaderValue, String> {
        let headers = self.headers.clone();
        let load = || async move {
            let answer = headers.oneshot(Request::new(Body::empty())).await.map_err(|error| in_words(&error))?;
            answer.headers().get(AUTHORIZATION).cloned().ok_or_else(|| "there is no token".to_owned())
        };
        loading_credentials(self.last.join((), load, |error| Err(error.to_string()))).await
    }
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
