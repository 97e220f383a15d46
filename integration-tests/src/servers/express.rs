//! A directory bucket of S3 Express One Zone: a gateway before SeaweedFS with the documented rules of such buckets.
//!
//! The gateway opens sessions, demands their tokens, lists folders in no order, and refuses what a directory bucket refuses.
//! It checks the key, the service and the signed headers of a signature, and does not compute the signature again: a proxy
//! before it changes the host, which Amazon's client has signed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::Credentials;
use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, SubsecRound as _, TimeDelta, Utc};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, DATE, HOST};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::TokioIo;
use leaderelection::clock::{Clock as _, SystemClock};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::seaweedfs::SeaweedFs;
use super::{s3_client, unique_name};
use crate::mutex::lock;
use crate::proxy::Request;
use crate::proxy::upstream::{Upstream, connector};

/// The directory bucket. Its objects are those of the bucket `bucket` of SeaweedFS.
pub const BUCKET: &str = "bucket--use1-az4--x-s3";
const BEHIND: &str = "bucket";

const TOKEN: &str = "x-amz-s3session-token";

type Answer = Response<Full<Bytes>>;
type Refusal = (StatusCode, &'static str);

/// The gateway, until it is dropped.
#[derive(Debug)]
pub struct Express {
    address: SocketAddr,
    state: Arc<State>,
    _accepting: JoinSet<()>,
}

#[derive(Debug)]
struct State {
    upstream: Upstream,
    /// The key of the credentials that open sessions.
    key: String,
    lifetime: TimeDelta,
    /// The time by which the gateway's clock is ahead of the machine's.
    ahead: TimeDelta,
    sessions: Mutex<Sessions>,
}

#[derive(Debug, Default)]
struct Sessions {
    opening: Opening,
    /// The key and the end of each session, by its token.
    open: BTreeMap<String, (String, DateTime<Utc>)>,
    opened: usize,
    refused: usize,
    /// The number of other requests.
    others: usize,
}

/// The treatment of requests that open a session.
#[derive(Clone, Copy, Debug, Default)]
pub struct Opening {
    /// The time before the answer.
    pub delay: Duration,
    /// The status and the code of the answer, if it is a refusal.
    pub refusal: Option<(u16, &'static str)>,
}

impl Express {
    /// Starts a gateway before a server with a bucket. A session lasts for `lifetime`, in whole seconds.
    ///
    /// # Panics
    ///
    /// If there is no port left.
    pub async fn start(server: &SeaweedFs, lifetime: Duration) -> Self {
        Self::with_clock(server, lifetime, TimeDelta::zero()).await
    }

    /// Starts a gateway whose clock is ahead of the machine's.
    ///
    /// # Panics
    ///
    /// If there is no port left.
    pub async fn with_clock(server: &SeaweedFs, lifetime: Duration, ahead: TimeDelta) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port on the loopback interface");
        let address = listener.local_addr().expect("a bound listener has an address");
        let state = Arc::new(State {
            upstream: Upstream::new(&server.url(), server.signer(), connector()),
            key: unique_name(),
            lifetime: TimeDelta::from_std(lifetime).expect("a possible time"),
            ahead,
            sessions: Mutex::default(),
        });
        let (mut accepting, answering) = (JoinSet::new(), Arc::clone(&state));
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&answering);
                connections.spawn(async move {
                    let service = service_fn(move |request| Arc::clone(&state).serve(request));
                    let _gone = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { address, state, _accepting: accepting }
    }

    /// The URL of the gateway, such as `http://127.0.0.1:31234`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The variables that give the SDK's own credential chain the credentials that open sessions.
    #[must_use]
    pub fn environment(&self) -> [(&'static str, &str); 2] {
        [("AWS_ACCESS_KEY_ID", &self.state.key), ("AWS_SECRET_ACCESS_KEY", &self.state.key)]
    }

    /// A client that may open sessions.
    #[must_use]
    pub fn client(&self) -> Client {
        s3_client::new(&self.url(), Credentials::new(&self.state.key, &self.state.key, None, None, "test"))
    }

    /// Changes the treatment of requests that open a session from now on.
    pub fn set_opening(&self, opening: Opening) {
        self.sessions().opening = opening;
    }

    /// Forgets all sessions, as if they had ended.
    pub fn forget_sessions(&self) {
        self.sessions().open.clear();
    }

    /// Returns the number of sessions that were opened.
    #[must_use]
    pub fn opened(&self) -> usize {
        self.sessions().opened
    }

    /// Returns the number of sessions that were refused as [`Opening`] says.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.sessions().refused
    }

    /// Returns the number of requests that did not open a session.
    #[must_use]
    pub fn others(&self) -> usize {
        self.sessions().others
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        lock(&self.state.sessions)
    }
}

/// The parts of a signature that the gateway checks.
struct Signed<'a> {
    key: &'a str,
    service: &'a str,
    headers: &'a str,
}

impl<'a> Signed<'a> {
    fn of(request: &'a Request) -> Option<Self> {
        let text = request.header(AUTHORIZATION.as_str())?.strip_prefix("AWS4-HMAC-SHA256 Credential=")?;
        let (scope, rest) = text.split_once(", SignedHeaders=")?;
        let [key, _day, _region, service, "aws4_request"] = scope.split('/').collect::<Vec<_>>()[..] else {
            return None;
        };
        Some(Self { key, service, headers: rest.split(',').next()? })
    }
}

impl State {
    async fn serve(self: Arc<Self>, request: hyper::Request<Incoming>) -> Result<Answer, &'static str> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| "the client went away")?.to_bytes();
        let target = head.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
        let request = Request { method: head.method, target, headers: head.headers, body };
        let mut answer = match self.answer(&request).await {
            Ok(answer) => answer,
            Err((status, code)) => error(status, code),
        };
        let date = self.now().format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        answer.headers_mut().insert(DATE, date.parse().expect("a header"));
        Ok(answer)
    }

    async fn answer(&self, request: &Request) -> Result<Answer, Refusal> {
        let target = request.target.strip_prefix(&format!("/{BUCKET}")).filter(|rest| rest.starts_with(['/', '?']));
        let target = target.ok_or((StatusCode::NOT_FOUND, "NoSuchBucket"))?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let signed = Signed::of(request).ok_or((StatusCode::FORBIDDEN, "AccessDenied"))?;
        if signed.service != "s3express" {
            return Err((StatusCode::BAD_REQUEST, "AuthorizationHeaderMalformed"));
        }
        if request.method == Method::GET && query == "session" {
            return self.open(request, &signed).await;
        }
        lock(&self.sessions).others += 1;
        self.check_session(request, &signed)?;
        if request.method == Method::HEAD && path.trim_matches('/').is_empty() {
            return Err((StatusCode::FORBIDDEN, "AccessDenied"));
        }
        let lists = query.contains("list-type=2");
        if lists {
            check_listing(query)?;
        }
        self.forward(request, target, lists).await
    }

    async fn open(&self, request: &Request, signed: &Signed<'_>) -> Result<Answer, Refusal> {
        let opening = lock(&self.sessions).opening;
        tokio::time::sleep(opening.delay).await;
        if let Some((status, code)) = opening.refusal {
            lock(&self.sessions).refused += 1;
            return Err((StatusCode::from_u16(status).expect("a status"), code));
        }
        if signed.key != self.key || request.header(TOKEN).is_some() {
            return Err((StatusCode::FORBIDDEN, "InvalidAccessKeyId"));
        }
        let (key, token) = (unique_name(), unique_name());
        let ends = self.now().trunc_subsecs(0) + self.lifetime;
        let mut sessions = lock(&self.sessions);
        sessions.opened += 1;
        sessions.open.insert(token.clone(), (key.clone(), ends));
        let ends = ends.to_rfc3339_opts(SecondsFormat::Secs, true);
        let body = format!(
            "<CreateSessionResult><Credentials><SessionToken>{token}</SessionToken><SecretAccessKey>{key}\
             </SecretAccessKey><AccessKeyId>{key}</AccessKeyId><Expiration>{ends}</Expiration></Credentials>\
             </CreateSessionResult>"
        );
        Ok(answer(StatusCode::OK, body))
    }

    fn check_session(&self, request: &Request, signed: &Signed<'_>) -> Result<(), Refusal> {
        let token = request.header(TOKEN).ok_or((StatusCode::FORBIDDEN, "AccessDenied"))?;
        if request.header("x-amz-security-token").is_some() || !signed.headers.split(';').any(|name| name == TOKEN) {
            return Err((StatusCode::BAD_REQUEST, "InvalidRequest"));
        }
        let found = lock(&self.sessions).open.get(token).cloned();
        let (key, ends) = found.ok_or((StatusCode::BAD_REQUEST, "InvalidToken"))?;
        if self.now() >= ends {
            return Err((StatusCode::BAD_REQUEST, "ExpiredToken"));
        }
        if key == signed.key { Ok(()) } else { Err((StatusCode::FORBIDDEN, "InvalidAccessKeyId")) }
    }

    async fn forward(&self, request: &Request, target: &str, lists: bool) -> Result<Answer, Refusal> {
        let mut request = request.clone();
        request.target = format!("/{BEHIND}{target}");
        request.headers.remove(TOKEN);
        request.headers.remove(HOST);
        let sent = self.upstream.send(&request).await;
        let found = sent.map_err(|_| (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"))?;
        let body = if lists { in_another_order(&found.body) } else { found.body };
        let mut answer = Response::new(Full::new(body));
        *answer.status_mut() = found.status;
        *answer.headers_mut() = found.headers;
        answer.headers_mut().remove("content-length");
        Ok(answer)
    }

    fn now(&self) -> DateTime<Utc> {
        SystemClock.wall_time() + self.ahead
    }
}

/// Refuses the listings that a directory bucket does not have.
fn check_listing(query: &str) -> Result<(), Refusal> {
    let parameter = |name: &str| query.split('&').find_map(|part| part.strip_prefix(&format!("{name}=")));
    let prefix = parameter("prefix").unwrap_or_default();
    let holds = prefix.is_empty() || prefix.ends_with("%2F") || prefix.ends_with('/');
    if holds && parameter("start-after").is_none() { Ok(()) } else { Err((StatusCode::BAD_REQUEST, "InvalidRequest")) }
}

/// Turns the objects of a page round: a directory bucket lists them in no order.
fn in_another_order(page: &Bytes) -> Bytes {
    const END: &str = "</Contents>";

    let text = String::from_utf8_lossy(page);
    let (Some(begin), Some(end)) = (text.find("<Contents>"), text.rfind(END)) else { return page.clone() };
    let end = end + END.len();
    let mut objects: Vec<&str> = text[begin..end].split_inclusive(END).collect();
    objects.reverse();
    let turned = objects.concat();
    format!("{}{turned}{}", &text[..begin], &text[end..]).into()
}

fn error(status: StatusCode, code: &str) -> Answer {
    answer(status, format!("<Error><Code>{code}</Code><Message>said the gateway</Message></Error>"))
}

fn answer(status: StatusCode, body: String) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
}
