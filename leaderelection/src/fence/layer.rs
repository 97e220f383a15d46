//! A fence in front of an HTTP service.

use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use tower_layer::Layer;
use tower_service::Service;

use super::gate::Gate;
use crate::lock::MAX_LEADER_TRANSITIONS;
use crate::term::FencingToken;

/// The header with a fencing token: that of the sender in a request, the largest one in a refusal.
pub const FENCING_TOKEN: HeaderName = HeaderName::from_static("fencing-token");

/// A layer for `tower` services, such as those of axum, that refuses the requests of earlier leaders.
///
/// A request shows its token in the header [`Fencing-Token`](FENCING_TOKEN). The layer answers by itself:
///
/// - 412, with the largest token in the same header, if the token is smaller.
/// - 428 if a request other than GET, HEAD, OPTIONS or TRACE has no token.
/// - 400 if the header is no token, or comes twice.
///
/// A safe request without a token passes, and one with a token raises the fence, so that a new leader can trust the answer.
///
/// # One step
///
/// Requests with the same token run side by side. A larger token waits until those of smaller ones have been answered, and
/// from then on these are refused. So a change that the handler makes before it answers is one step with the check.
/// A handler must not change anything later, in a task or in the body of its answer. A handler that hangs keeps the
/// next leader waiting, so a time limit belongs behind this layer.
///
/// The token of a request that has passed is in its extensions, as a [`FencingToken`]. A handler whose data outlives the process
/// stores it with the data, in one step.
///
/// All clones of a layer are one fence, and so are all services that it wraps. Two processes need a fence in what they
/// share.
///
/// ```
/// use http::{Request, Response, StatusCode};
/// use leaderelection::fence::{FENCING_TOKEN, FenceLayer};
/// use leaderelection::FencingToken;
/// use tower::{Layer, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Of axum: `Router::new().route("/account", put(deposit)).layer(FenceLayer::new())`.
/// let account = service_fn(|request: Request<String>| async move {
///     let token = request.extensions().get::<FencingToken>().copied();
///     Ok::<_, std::convert::Infallible>(Response::new(format!("written with {token:?}")))
/// });
/// let fenced = FenceLayer::new().layer(account);
///
/// let put = |token: u64| Request::put("/account").header(FENCING_TOKEN, token).body(String::new());
/// assert_eq!(fenced.clone().oneshot(put(7)?).await?.status(), StatusCode::OK);
/// let refused = fenced.clone().oneshot(put(6)?).await?;
/// assert_eq!(refused.status(), StatusCode::PRECONDITION_FAILED);
/// assert_eq!(refused.headers()[FENCING_TOKEN], "7");
/// # Ok(())
/// # }
/// ```
///
/// # Restarts
///
/// The token is in memory, as in a [`Fence`](super::Fence). After a restart, a service whose data has stayed begins with
/// [`starting_at`](Self::starting_at).
#[derive(Clone, Debug, Default)]
pub struct FenceLayer {
    gate: Gate,
}

impl FenceLayer {
    /// A fence that has seen no token, so that every token passes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A fence that has seen `token`: for a service that has stored its largest token and starts again.
    #[must_use]
    pub fn starting_at(token: impl Into<FencingToken>) -> Self {
        Self { gate: Gate::starting_at(token.into()) }
    }
}

impl<S> Layer<S> for FenceLayer {
    type Service = Fenced<S>;

    fn layer(&self, inner: S) -> Fenced<S> {
        Fenced { inner, gate: self.gate.clone() }
    }
}

/// A service behind a [`FenceLayer`].
#[derive(Clone, Debug)]
pub struct Fenced<S> {
    inner: S,
    gate: Gate,
}

impl<S, B, R> Service<Request<B>> for Fenced<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
    R: From<String>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        // Only the service that was asked is ready.
        let clone = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, clone);
        let gate = self.gate.clone();
        Box::pin(async move {
            let token = match token(&request) {
                Ok(Some(token)) => token,
                Ok(None) => return inner.call(request).await,
                Err((status, problem)) => return Ok(refusal(status, problem.to_owned())),
            };
            let _inside = match gate.enter(token).await {
                Ok(inside) => inside,
                Err(stale) => {
                    let mut refusal = refusal(StatusCode::PRECONDITION_FAILED, stale.to_string());
                    refusal.headers_mut().insert(FENCING_TOKEN, stale.highest.number().into());
                    return Ok(refusal);
                }
            };
            request.extensions_mut().insert(token);
            inner.call(request).await
        })
    }
}

/// Returns the token of a request, or `None` if the request needs none.
fn token<B>(request: &Request<B>) -> Result<Option<FencingToken>, (StatusCode, &'static str)> {
    let mut shown = request.headers().get_all(FENCING_TOKEN).iter();
    match (shown.next(), shown.next()) {
        (None, _) if request.method().is_safe() => Ok(None),
        (None, _) => Err((StatusCode::PRECONDITION_REQUIRED, "send the leader's fencing token in `Fencing-Token`")),
        (Some(value), None) => match parse(value) {
            Some(token) => Ok(Some(token)),
            None => {
                Err((StatusCode::BAD_REQUEST, "`Fencing-Token` is no number from 0 to 2^53 - 1; send the leader's"))
            }
        },
        (Some(_), Some(_)) => Err((StatusCode::BAD_REQUEST, "`Fencing-Token` is there more than once; send one")),
    }
}

/// Reads digits, without a sign, of a token that an election can give.
fn parse(value: &HeaderValue) -> Option<FencingToken> {
    let digits = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok().filter(|number| *number <= MAX_LEADER_TRANSITIONS).map(FencingToken::new)
}

fn refusal<R: From<String>>(status: StatusCode, problem: String) -> Response<R> {
    let mut response = Response::new(problem.into());
    *response.status_mut() = status;
    response
}
