//! The answers to probes as a `tower` service.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use tower_service::Service;

use super::Probes;

/// Answers GET and HEAD with [`answer`](Probes::answer) for the request's path, and other methods with 405. Behind the
/// feature `tower`.
///
/// ```
/// use http::{Request, StatusCode};
/// use tower::ServiceExt;
/// # use std::time::Duration;
/// # use leaderelection::{DefaultLeaderElector, Elector, LeaderElectionConfig, MemoryLock, MemoryStore, Probes};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let lock = MemoryLock::new(MemoryStore::new(), "lock", "a");
/// # let elector = DefaultLeaderElector::new(LeaderElectionConfig::builder(lock, ()).build()?);
/// // In axum: `Router::new().fallback_service(probes)`.
/// let probes = Probes::new(elector.handle(), elector.health_check(Duration::from_secs(20)));
/// let answer = probes.oneshot(Request::get("/leading").body(())?).await?;
/// assert_eq!((answer.status(), answer.body().as_str()), (StatusCode::SERVICE_UNAVAILABLE, "not leading"));
/// # Ok(())
/// # }
/// ```
impl<B> Service<Request<B>> for Probes {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (code, text) = match *request.method() {
            Method::GET | Method::HEAD => self.answer(request.uri().path()),
            _ => (405, "use GET".to_owned()),
        };
        let mut response = Response::new(text);
        *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if code == 405 {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        ready(Ok(response))
    }
}
