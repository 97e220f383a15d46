//! Tokens and certificates that take longer to get than a request may take, such as those of a command that the kubeconfig
//! names.

use std::fmt;
use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response};
use kube::client::middleware::AuthLayer;
use kube::client::{AuthError, Body, ConfigExt as _};
use kube::{Client, Config};
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::implement::loading_credentials_of;
use leaderelection_store_support::request::fresh::Fresh;
use leaderelection_store_support::request::kept::{Kept, Loaded};
use tokio::task::spawn_blocking;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Layer as _, ServiceExt as _, service_fn};

use crate::command::{self, Certificate, Credential, Problem};
use crate::error;

/// The time after which kube is asked again. It knows the end of a token, and reads a file once per minute.
const AGAIN: Duration = Duration::from_secs(10);

/// The time after which a request waits for that answer.
const LIMIT: Duration = Duration::from_secs(60);

/// The configuration as its source has it now.
pub(crate) type Again = Arc<dyn Fn() -> BoxFuture<'static, Option<Config>> + Send + Sync>;

/// The same configuration each time. The files that it names are read anew, and its command runs anew.
pub(crate) fn same(config: &Config) -> Again {
    let config = config.clone();
    Arc::new(move || Box::pin(ready(Some(config.clone()))))
}

type Headers = BoxCloneSyncService<Request<Body>, Response<()>, BoxError>;

type Given = Loaded<Option<HeaderValue>>;

/// The certificate that a command has given to the user.
#[derive(Clone, Default)]
pub(crate) struct Shown(Arc<Mutex<Option<Certificate>>>);

impl Shown {
    pub(crate) fn get(&self) -> Option<Certificate> {
        lock(&self.0).clone()
    }
}

/// The source of the header `Authorization`, and of certificates. Within its own requests, kube would run a command anew for
/// each.
pub(crate) struct Tokens {
    source: Arc<Source>,
    /// kube reads the kubeconfig once, and keeps a token without an end forever.
    is_refused: AtomicBool,
    /// `None` if the user is known by a certificate, or not at all.
    kept: Kept<Option<HeaderValue>, Problem>,
}

struct Source {
    again: Again,
    /// The layer that kube gives to each request.
    headers: Mutex<Option<Headers>>,
    shown: Shown,
    /// The client, which shows one certificate for its whole life.
    client: Fresh<Client>,
}

impl Tokens {
    /// Takes over what a client would give to each request.
    pub(crate) fn of(layer: Option<&AuthLayer>, again: Again, shown: Shown, client: Fresh<Client>) -> Self {
        let source = Source { again, headers: Mutex::new(layer.map(of_layer)), shown, client };
        let (source, is_refused) = (Arc::new(source), AtomicBool::new(false));
        Self { source, is_refused, kept: Kept::new("the store of Leases") }
    }

    /// Returns the header, or says why there is none.
    pub(crate) async fn header(&self) -> Result<Option<HeaderValue>, Problem> {
        let load = || {
            let (source, is_refused) = (Arc::clone(&self.source), self.is_refused.swap(false, Ordering::Relaxed));
            async move { source.load(is_refused).await }
        };
        loading_credentials_of(command::NAME, self.kept.get(load)).await
    }

    /// Notes that the API server has refused the token or the certificate. Returns `true` if the next request has another.
    pub(crate) fn refused(&self) -> bool {
        let is_old = self.kept.refused();
        self.is_refused.fetch_or(is_old, Ordering::Relaxed);
        is_old
    }
}

impl Source {
    async fn load(&self, is_refused: bool) -> Result<Given, Problem> {
        let former = lock(&self.headers).clone();
        match former {
            Some(former) if !is_refused => header_of(former).await,
            former => self.read_again(former, is_refused).await,
        }
    }

    /// Reads the configuration and its files again, and runs its command.
    async fn read_again(&self, former: Option<Headers>, is_refused: bool) -> Result<Given, Problem> {
        let config = match ((self.again)().await, former.clone()) {
            (Some(config), _) => config,
            (None, Some(former)) => return header_of(former).await,
            (None, None) => return Err(Problem::now("the kubeconfig cannot be read")),
        };
        if let Some(exec) = command::of(&config.auth_info) {
            let Credential { token, certificate, life } = command::run(exec).await?;
            let header = token.map(|token| bearer(&token)).transpose()?;
            *lock(&self.headers) = None;
            self.show(certificate, is_refused);
            let now = SystemClock.now();
            return Ok(match life {
                Some(life) => Loaded::valid_for(header, now, Some(life)),
                None => Loaded::until_refused(header, now),
            });
        }
        let layer =
            spawn_blocking(move || config.auth_layer()).await.map_err(|error| Problem::now(error.to_string()))?;
        let layer = layer.map_err(|error| match error {
            kube::Error::Auth(error) => Problem::now(error::of_auth(&error)),
            error => Problem::now(error.to_string()),
        })?;
        self.show(None, is_refused);
        match layer.as_ref().map(of_layer).or(former) {
            Some(present) => {
                let header = header_of(present.clone()).await?;
                *lock(&self.headers) = Some(present);
                Ok(header)
            }
            None => Ok(Loaded::until_refused(None, SystemClock.now())),
        }
    }

    /// Lets the next client have this certificate, or what the files have now.
    fn show(&self, certificate: Option<Certificate>, is_refused: bool) {
        let mut shown = lock(&self.shown.0);
        if *shown != certificate || is_refused {
            *shown = certificate;
            self.client.renew();
        }
    }
}

async fn header_of(headers: Headers) -> Result<Given, Problem> {
    let answer = headers.oneshot(Request::new(Body::empty())).await.map_err(|error| Problem::now(in_words(&error)))?;
    let header = answer.headers().get(AUTHORIZATION).cloned();
    let header = header.ok_or_else(|| Problem::now("there is no token"))?;
    Ok(Loaded::asked_again(Some(header), SystemClock.now(), AGAIN, LIMIT))
}

fn bearer(token: &str) -> Result<HeaderValue, Problem> {
    let mut header = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| {
        Problem::now(format!("{} prints a token that is not one line of text; run it by hand", command::NAME))
    })?;
    header.set_sensitive(true);
    Ok(header)
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}
