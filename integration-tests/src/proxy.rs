//! A network that loses, delays, repeats and falsifies: an HTTP proxy between a client and a real server.
//!
//! A proxy is one client's way to the server, so that two candidates can have different networks. The proxy
//! records every request and every answer, and is the only place that shows the requests of the client's SDK as
//! sent. The proxy speaks no gRPC, because no election needs it.

mod conditions;
mod fault;
pub mod sign;
mod traffic;
pub(crate) mod upstream;

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{HeaderMap, StatusCode, header};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use leaderelection::clock::{Clock as _, SystemClock};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

pub use conditions::Conditions;
pub use fault::{Delivery, Fault, Reply};
pub use traffic::{Exchange, Kind, Request};

use crate::mutex::lock;
use conditions::Writes;
use sign::Signer;
use upstream::{Answer, Upstream};
pub use upstream::{Connector, connector};

/// The time that a test waits for a required event.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of requests that the message of a wait in vain shows.
const SHOWN: usize = 40;

/// The proxy. It listens on a port of its own on the loopback interface until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy for the server at `url`, such as `http://127.0.0.1:31234`. Without faults, the proxy
    /// passes everything on unchanged.
    pub async fn start(url: &str, signer: Signer) -> Self {
        Self::start_with(url, signer, connector()).await
    }

    /// Like [`start`](Self::start), with a connector that trusts the server and has the client's certificate for it.
    pub async fn start_with(url: &str, signer: Signer, connector: Connector) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port on the loopback interface");
        let address = listener.local_addr().expect("a bound listener has an address");
        let state = Arc::new(State {
            upstream: Upstream::new(url, signer, connector),
            plan: Mutex::default(),
            writes: Writes::default(),
            traffic: watch::Sender::default(),
        });
        let accepting = tokio::spawn(serve(listener, state.clone()));
        Self { address, state, accepting }
    }

    /// The URL of the proxy, such as `http://127.0.0.1:31234`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Spoils the `nth` matching request, counted from 0 and from now on. `like` selects the matching requests.
    pub fn spoil(&self, nth: usize, like: impl Fn(&Request) -> bool + Send + 'static, fault: Fault) {
        lock(&self.state.plan).rules.push(Rule { like: Box::new(like), skip: nth, fault, outage: None });
    }

    /// Spoils the `nth` matching request with `first`, and every later matching request with `rest`.
    pub fn spoil_from(&self, nth: usize, like: impl Fn(&Request) -> bool + Send + 'static, first: Fault, rest: Fault) {
        lock(&self.state.plan).rules.push(Rule { like: Box::new(like), skip: nth, fault: first, outage: Some(rest) });
    }

    /// Spoils every request without another fault from now on; `None` ends the outage.
    pub fn set_outage(&self, outage: Option<Fault>) {
        lock(&self.state.plan).outage = outage;
    }

    /// Lets a page of a listing, and any other request, wait so long before the delivery, from now on.
    pub fn set_pace(&self, page: Duration, request: Duration) {
        lock(&self.state.plan).pace = Pace { page, request };
    }

    /// Removes all planned faults. Held requests stay held.
    pub fn forget_faults(&self) {
        let mut plan = lock(&self.state.plan);
        plan.rules.clear();
        plan.outage = None;
    }

    /// Sets the server's apparent treatment of conditions from now on.
    pub fn set_conditions(&self, conditions: Conditions) {
        lock(&self.state.plan).conditions = conditions;
    }

    /// Delivers the held requests, oldest first, and returns the server's answers. A client that still waits
    /// for an answer gets it.
    pub async fn deliver_held(&self) -> Vec<u16> {
        self.state.deliver_held().await
    }

    /// Returns the traffic so far.
    #[must_use]
    pub fn traffic(&self) -> Vec<Exchange> {
        self.state.traffic.borrow().clone()
    }

    /// Looks at the traffic so far, which is long after many minutes, without a copy.
    pub fn inspect_traffic<T>(&self, look: impl FnOnce(&[Exchange]) -> T) -> T {
        look(&self.state.traffic.borrow())
    }

    /// Waits until `holds` returns `true` for the traffic, and returns the traffic.
    ///
    /// # Panics
    ///
    /// If the wait takes too long. The message shows the end of the traffic.
    pub async fn wait_for(&self, what: &str, holds: impl Fn(&[Exchange]) -> bool) -> Vec<Exchange> {
        self.wait_for_some(what, |traffic| holds(traffic).then(|| traffic.to_vec())).await
    }

    /// Waits until `find` finds something in the traffic, and returns that.
    ///
    /// # Panics
    ///
    /// If the wait takes too long. The message shows the end of the traffic.
    pub async fn wait_for_some<T>(&self, what: &str, find: impl Fn(&[Exchange]) -> Option<T>) -> T {
        let (mut traffic, mut found) = (self.state.traffic.subscribe(), None);
        let waiting = traffic.wait_for(|traffic| {
            found = find(traffic);
            found.is_some()
        });
        match tokio::time::timeout(PATIENCE, waiting).await.map(drop) {
            Ok(()) => found.expect("the proxy is there"),
            Err(_) => {
                let traffic = self.traffic();
                panic!("in vain: {what}; the last traffic: {:#?}", &traffic[traffic.len().saturating_sub(SHOWN)..]);
            }
        }
    }

    /// Waits until this number of requests is held.
    pub async fn wait_for_held(&self, count: usize) {
        self.wait_for("requests are held", |_| lock(&self.state.plan).held.len() >= count).await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

struct State {
    upstream: Upstream,
    plan: Mutex<Plan>,
    writes: Writes,
    traffic: watch::Sender<Vec<Exchange>>,
}

#[derive(Default)]
struct Plan {
    rules: Vec<Rule>,
    outage: Option<Fault>,
    conditions: Conditions,
    pace: Pace,
    held: Vec<Held>,
}

/// The time that requests take longer than at the server.
#[derive(Clone, Copy, Default)]
struct Pace {
    page: Duration,
    request: Duration,
}

struct Rule {
    like: Box<dyn Fn(&Request) -> bool + Send>,
    skip: usize,
    fault: Fault,
    /// The fault of all requests without another fault.
    outage: Option<Fault>,
}

struct Held {
    number: usize,
    request: Request,
    /// The receiver of the answer.
    waiting: oneshot::Sender<Answer>,
}

impl Plan {
    fn fault_for(&mut self, request: &Request) -> Option<Fault> {
        let mut due = None;
        for (index, rule) in self.rules.iter_mut().enumerate().filter(|(_, rule)| (rule.like)(request)) {
            // Every rule counts all matching requests, including those that another rule spoils.
            match rule.skip.checked_sub(1) {
                Some(skip) => rule.skip = skip,
                None => due = due.or(Some(index)),
            }
        }
        let Some(due) = due else { return self.outage };
        let rule = self.rules.remove(due);
        self.outage = rule.outage.or(self.outage);
        Some(rule.fault)
    }
}

type Response = hyper::Response<Full<Bytes>>;

/// The reason for which the proxy closes the connection.
type Cut = &'static str;

impl State {
    async fn carry(self: Arc<Self>, request: hyper::Request<Incoming>) -> Result<Response, Cut> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| "the client went away")?.to_bytes();
        let target = head.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
        let request = Request { method: head.method, target, headers: head.headers, body };
        let fault = lock(&self.plan).fault_for(&request);
        let number = self.record(&request, fault);
        let Pace { page, request: other } = lock(&self.plan).pace;
        tokio::time::sleep(if request.lists() { page } else { other }).await;
        let fault = fault.unwrap_or(Fault::NONE);
        // A task of its own, because the server does not stop when the client gives up.
        let delivery = tokio::spawn(self.clone().deliver(number, request, fault.delivery));
        let answers =
            if fault.waits_for_the_server() { delivery.await.map_err(|_| "the proxy failed")? } else { Vec::new() };
        let told = match fault.reply {
            Reply::Honest => answers.first().map(Answer::to_response).ok_or("the server did not answer")?,
            Reply::Second => answers.get(1).map(Answer::to_response).ok_or("the server did not answer twice")?,
            Reply::Silence => std::future::pending().await,
            Reply::Cut => return Err("a fault of the test"),
            Reply::Status(status) => made_up(status, None),
            Reply::Throttled(seconds) => made_up(429, Some(seconds)),
        };
        self.note(number, |exchange| exchange.told = Some(told.status().as_u16()));
        Ok(told)
    }

    /// Delivers a request according to the fault, and returns the server's answers.
    async fn deliver(self: Arc<Self>, number: usize, request: Request, delivery: Delivery) -> Vec<Answer> {
        let times = match delivery {
            Delivery::Never => 0,
            Delivery::Once => 1,
            Delivery::Twice => 2,
            Delivery::BehindHeld => {
                self.deliver_held().await;
                1
            }
            Delivery::Held => {
                let (waiting, answer) = oneshot::channel();
                lock(&self.plan).held.push(Held { number, request, waiting });
                // This wakes `wait_for_held`.
                self.note(number, |_| {});
                return answer.await.into_iter().collect();
            }
        };
        let mut answers = Vec::new();
        for _ in 0..times {
            answers.extend(self.send(number, &request).await);
        }
        answers
    }

    async fn deliver_held(&self) -> Vec<u16> {
        let held = std::mem::take(&mut lock(&self.plan).held);
        let mut statuses = Vec::new();
        for Held { number, request, waiting } in held {
            if let Some(answer) = self.send(number, &request).await {
                statuses.push(answer.status.as_u16());
                // The receiver is gone if the client is to get no answer.
                let _ = waiting.send(answer);
            }
        }
        statuses
    }

    async fn send(&self, number: usize, request: &Request) -> Option<Answer> {
        let conditions = lock(&self.plan).conditions;
        let answer = if request.is_write() {
            let (_under_way, others) = self.writes.begin(request.object());
            let changed = match conditions {
                Conditions::Ignored => Some(conditions::stripped(request)),
                Conditions::IgnoredUnderConcurrency if others > 0 => Some(conditions::stripped(request)),
                Conditions::BareEtags => match conditions::quoted(request) {
                    Some(quoted) => Some(quoted),
                    None => {
                        self.note(number, |exchange| exchange.answers.push(412));
                        return Some(Answer::precondition_failed());
                    }
                },
                Conditions::Enforced | Conditions::IgnoredUnderConcurrency => None,
            };
            self.upstream.send(changed.as_ref().unwrap_or(request)).await
        } else {
            self.upstream.send(request).await
        };
        let answer = answer.ok()?;
        self.note(number, |exchange| {
            exchange.answers.push(answer.status.as_u16());
            exchange.answered = Some(SystemClock.now());
        });
        Some(answer)
    }

    fn record(&self, request: &Request, fault: Option<Fault>) -> usize {
        let exchange = Exchange {
            arrived: SystemClock.now(),
            request: request.clone(),
            kind: request.kind(),
            fault,
            answers: Vec::new(),
            answered: None,
            told: None,
        };
        let mut number = 0;
        self.traffic.send_modify(|traffic| {
            number = traffic.len();
            traffic.push(exchange);
        });
        number
    }

    fn note(&self, number: usize, change: impl FnOnce(&mut Exchange)) {
        self.traffic.send_modify(|traffic| change(&mut traffic[number]));
    }
}

impl Answer {
    fn precondition_failed() -> Self {
        Self { status: StatusCode::PRECONDITION_FAILED, headers: HeaderMap::new(), body: Bytes::new() }
    }

    fn to_response(&self) -> Response {
        let mut response = response(self.status, self.body.clone());
        *response.headers_mut() = self.headers.clone();
        response
    }
}

fn made_up(status: u16, retry_after: Option<u32>) -> Response {
    let status = StatusCode::from_u16(status).expect("a fault with a possible status");
    let mut response = response(status, Bytes::new());
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

fn response(status: StatusCode, body: Bytes) -> Response {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    // Dropping the set closes the connections together with the proxy.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let state = state.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| state.clone().carry(request));
            // An error means that the client has gone or that a fault was planned.
            let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("upstream", &self.upstream).finish_non_exhaustive()
    }
}
