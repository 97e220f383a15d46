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

/// The header with a fencing token: in a request, the sender's token; in a refusal, the largest token so far.
pub const FENCING_TOKEN: HeaderName = HeaderName::from_static("fencing-token");

/// A layer for `tower` services, such as those of axum, that refuses the requests of earlier leaders.
///
/// A request has its token in the header [`Fencing-Token`](FENCING_TOKEN). The layer refuses a request with status
///
/// - 412 if the layer has seen a larger token, which the answer has in the same header;
/// - 428 if the request has no token, unless it is a GET, HEAD, OPTIONS or TRACE;
/// - 400 if the header is not a token, or was sent more than once.
///
/// A GET with a token raises the fence like a write, so a new leader can trust the answer.
///
/// # One step
///
/// Requests with the same token run concurrently. A larger token waits until all requests with smaller ones have been
/// answered, and from then on smaller tokens are refused. So if the handler makes a change before it answers, the check
/// and the change are one atomic step. A handler must not change anything after that, in a task or in the body of its
/// answer. A handler that hangs keeps the next leader waiting, so put a timeout between this layer and the handler.
///
/// The handler finds the token as a [`FencingToken`] in the extensions of the request. If its data outlives the
/// process, the handler has to store the token with the data, in one step.
///
/// All clones of a layer, and all services that it wraps, share one fence. If several processes change the same data,
/// this layer is not enough: the data itself needs a fence.
///
/// ```
/// use http::{Request, Response, StatusCode};
/// use leaderelection::fence::{FENCING_TOKEN, FenceLayer};
/// use leaderelection::FencingToken;
/// use tower::{Layer, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // With axum: `Router::new().route("/account", put(deposit)).layer(FenceLayer::new())`.
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
/// The fence is in memory, like a [`Fence`](super::Fence). If the data outlives a restart of the service, create the
/// layer with [`starting_at`](Self::starting_at) and the stored token.
#[derive(Clone, Debug, Default)]
pub struct FenceLayer {
    gate: Gate,
}

impl FenceLayer {
    /// Creates a fence that has seen no token, so that the first token passes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a fence that has seen `token`, for a service that has stored its largest token and starts again.
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
        // `poll_ready` has made `self.inner` ready, but a clone may not be ready. So the request takes the original.
        let clone = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, clone);
        let gate = self.gate.clone();
        Box::pin(async move {
            let token = match token(&request) {
                Ok(Some(token)) => token,
                Ok(None) => return inner.call(request).await,
                Err((status, problem)) => return Ok(refusal(status, problem.to_owned())),
            };
            let _permit = match gate.enter(token).await {
                Ok(permit) => permit,
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

/// Returns the token of a request; `None` if it has none and needs none. The error is the status and text of a refusal.
fn token<B>(request: &Request<B>) -> Result<Option<FencingToken>, (StatusCode, &'static str)> {
    let mut values = request.headers().get_all(FENCING_TOKEN).iter();
    match (values.next(), values.next()) {
        (None, _) if request.method().is_safe() => Ok(None),
        (None, _) => Err((StatusCode::PRECONDITION_REQUIRED, "send the leader's fencing token in `Fencing-Token`")),
        (Some(value), None) => match parse(value) {
            Some(token) => Ok(Some(token)),
            None => {
                Err((StatusCode::BAD_REQUEST, "`Fencing-Token` is not a number from 0 to 2^53 - 1; send the leader's"))
            }
        },
        (Some(_), Some(_)) => Err((StatusCode::BAD_REQUEST, "`Fencing-Token` was sent more than once; send it once")),
    }
}

/// Parses a token that an election can have. Only digits are accepted, without a sign.
fn parse(value: &HeaderValue) -> Option<FencingToken> {
    let digits = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok().filter(|number| *number <= MAX_LEADER_TRANSITIONS).map(FencingToken::new)
}

fn refusal<R: From<String>>(status: StatusCode, problem: String) -> Response<R> {
    let mut response = Response::new(problem.into());
    *response.status_mut() = status;
    response
}
