//! A service behind a fence: what waits for what, in simulated time.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use futures_util::future::poll_immediate;
use http::{Request, Response, StatusCode};
use leaderelection::FencingToken;
use leaderelection::fence::{FENCING_TOKEN, FenceLayer, Fenced};
use tokio::sync::Semaphore;
use tower::util::BoxCloneService;
use tower::{Layer as _, Service as _, ServiceExt as _, service_fn};

type Requests = BoxCloneService<Request<()>, Response<String>, Infallible>;

/// A log, and a handler that appends in two steps: at the first, it awaits the test.
#[derive(Clone)]
struct Stage {
    log: Arc<Mutex<Vec<String>>>,
    go: Arc<Semaphore>,
    service: Fenced<Requests>,
}

impl Stage {
    fn new() -> Self {
        let (log, go) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Semaphore::new(0)));
        let (entries, permits) = (Arc::clone(&log), Arc::clone(&go));
        let handler = service_fn(move |request: Request<()>| {
            let (entries, permits) = (Arc::clone(&entries), Arc::clone(&permits));
            async move {
                let token = request.extensions().get::<FencingToken>().map(|token| u64::from(*token));
                let say = |what: &str| entries.lock().unwrap().push(format!("{token:?} {what}"));
                say("begins");
                permits.acquire().await.unwrap().forget();
                say("ends");
                Ok::<_, Infallible>(Response::new("done".to_owned()))
            }
        });
        Self { log, go, service: FenceLayer::new().layer(BoxCloneService::new(handler)) }
    }

    fn put(&self, token: u64) -> impl Future<Output = StatusCode> + Unpin + use<> {
        let request = Request::put("/").header(FENCING_TOKEN, token).body(()).unwrap();
        let service = self.service.clone();
        Box::pin(async move { service.oneshot(request).await.unwrap().status() })
    }

    fn log(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

#[tokio::test]
async fn a_larger_token_waits_for_the_answers_to_smaller_ones() {
    let stage = Stage::new();
    let (mut old, mut beside) = (stage.put(5), stage.put(5));
    assert_eq!(poll_immediate(&mut old).await, None);
    assert_eq!(poll_immediate(&mut beside).await, None);
    assert_eq!(stage.log(), ["Some(5) begins", "Some(5) begins"], "requests of one leader run side by side");

    let mut new = stage.put(6);
    assert_eq!(poll_immediate(&mut new).await, None);
    let mut late = stage.put(5);
    assert_eq!(poll_immediate(&mut late).await, None);
    assert!(stage.log().is_empty(), "nothing begins beside the requests of a smaller token");

    stage.go.add_permits(2);
    assert_eq!((old.await, beside.await), (StatusCode::OK, StatusCode::OK));
    assert_eq!(poll_immediate(&mut new).await, None);
    assert_eq!(late.await, StatusCode::PRECONDITION_FAILED);
    assert_eq!(stage.log(), ["Some(5) ends", "Some(5) ends", "Some(6) begins"]);
    stage.go.add_permits(1);
    assert_eq!(new.await, StatusCode::OK);
}

#[tokio::test]
async fn a_request_that_is_given_up_lets_the_next_token_in() {
    let stage = Stage::new();
    let mut old = stage.put(5);
    assert_eq!(poll_immediate(&mut old).await, None);
    let mut gone = stage.put(7);
    assert_eq!(poll_immediate(&mut gone).await, None);
    drop(gone);
    let mut new = stage.put(6);
    assert_eq!(poll_immediate(&mut new).await, None);
    drop(old);
    assert_eq!(poll_immediate(&mut new).await, None);
    assert_eq!(stage.log(), ["Some(5) begins", "Some(6) begins"], "what never got in has raised nothing");
}

#[tokio::test]
async fn the_service_that_was_asked_is_the_one_that_is_called() {
    #[derive(Clone)]
    struct ReadyOnce(bool);
    impl tower::Service<Request<()>> for ReadyOnce {
        type Response = Response<String>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Response<String>, Infallible>>;
        fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), Infallible>> {
            self.0 = true;
            Poll::Ready(Ok(()))
        }
        fn call(&mut self, _: Request<()>) -> Self::Future {
            assert!(std::mem::take(&mut self.0), "it was asked before");
            std::future::ready(Ok(Response::new(String::new())))
        }
    }
    let mut service = FenceLayer::new().layer(ReadyOnce(false));
    for token in [1, 2] {
        let request = Request::put("/").header(FENCING_TOKEN, token).body(()).unwrap();
        assert_eq!(service.ready().await.unwrap().call(request).await.unwrap().status(), StatusCode::OK);
    }
}
