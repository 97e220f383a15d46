//! An S3 that checks the access key of each request, and the sources of such keys, which misbehave as a test wants it to.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use leaderelection_integration_tests::servers::tls::TlsFront;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::support::PATIENCE;

/// The answer of a source of keys.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// This key, for this long.
    Gives(&'static str, Duration),
    Fails,
    IsSilent,
    /// It closes the connection.
    Closes,
}

pub(crate) struct Seen {
    /// The objects, with the number of their version.
    objects: HashMap<String, (u64, Bytes)>,
    accepted: Vec<&'static str>,
    refusal: (u16, &'static str),
    /// The requests with each key that the store has accepted.
    pub(crate) by: HashMap<String, u32>,
    /// The requests for keys.
    pub(crate) asked: u32,
    /// The requests for the region of the machine.
    pub(crate) regions: u32,
}

struct Inner {
    seen: Mutex<Seen>,
    changed: Condvar,
    source: watch::Sender<Source>,
}

/// All servers in one, until it is dropped.
pub(crate) struct World {
    inner: Arc<Inner>,
    url: String,
    runtime: Runtime,
}

impl World {
    pub(crate) fn new(accepted: &[&'static str], source: Source) -> Self {
        let seen = Seen {
            objects: HashMap::new(),
            accepted: accepted.to_vec(),
            refusal: (403, "InvalidAccessKeyId"),
            by: HashMap::new(),
            asked: 0,
            regions: 0,
        };
        let (seen, changed, source) = (Mutex::new(seen), Condvar::new(), watch::Sender::new(source));
        let inner = Arc::new(Inner { seen, changed, source });
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = Router::new().fallback(answer).with_state(Arc::clone(&inner));
        runtime.spawn(async { axum::serve(listener, routes).await });
        Self { inner, url, runtime }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// TLS in front of all of them, with a certificate in `directory` that no machine knows.
    pub(crate) fn tls(&self, directory: &Path) -> TlsFront {
        self.runtime.block_on(TlsFront::start(&self.url, &["http/1.1"], directory))
    }

    pub(crate) fn lock(&self) -> String {
        format!("s3://bucket/lock?endpoint={}", self.url)
    }

    pub(crate) fn set_source(&self, source: Source) {
        self.inner.source.send_replace(source);
    }

    /// Accepts this key and no other, which is refused with this answer.
    pub(crate) fn accept_only(&self, key: &'static str, refusal: (u16, &'static str)) {
        let mut seen = self.inner.seen();
        (seen.accepted, seen.refusal) = (vec![key], refusal);
    }

    /// The requests for keys so far.
    pub(crate) fn asked(&self) -> u32 {
        self.inner.seen().asked
    }

    /// Waits until this is so, and returns the number of accepted requests with `key`.
    pub(crate) fn wait_until(&self, key: &str, is_so: impl Fn(&Seen) -> bool) -> u32 {
        let (mut seen, end) = (self.inner.seen(), Instant::now() + PATIENCE);
        while !is_so(&seen) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "asked {} times; accepted {:?}", seen.asked, seen.by);
            seen = self.inner.changed.wait_timeout(seen, left).unwrap().0;
        }
        seen.by.get(key).copied().unwrap_or_default()
    }
}

impl Inner {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }
}

async fn answer(
    State(world): State<Arc<Inner>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let text = String::from_utf8_lossy(&body).into_owned();
    let is_closed = matches!(*world.source.borrow(), Source::Closes);
    let is_of_store = ["/bucket/", "/storage/"].iter().any(|store| uri.path().starts_with(store));
    if is_closed && !is_of_store {
        world.seen().asked += 1;
        world.changed.notify_all();
        // The task of the connection ends, and nothing is printed.
        std::panic::resume_unwind(Box::new("closed"));
    }
    let token = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default().to_owned());
    match uri.path() {
        path if path.starts_with("/bucket/") => world.store(&method, path, &headers, body),
        path if path.starts_with("/storage/") => world.bearer(&headers, "No such object: bucket/lock"),
        path if path.starts_with("/account/") => world.blob(&method, path, &headers, body),
        path if path.starts_with("/apis/") => world.lease(&method, path, &headers, &body),
        "/token" => {
            let of_file = text.split('&').find_map(|part| part.strip_prefix("subject_token=")).map(str::to_owned);
            let of_user = || Some(serde_json::from_str::<Value>(&text).ok()?["refresh_token"].as_str()?.to_owned());
            world.key(of_file.or_else(of_user), google).await
        }
        "/tenant/oauth2/v2.0/token" => {
            let token = text.split('&').find_map(|part| part.strip_prefix("client_assertion=")).map(str::to_owned);
            world.key(token, entra).await
        }
        path if path.starts_with("/computeMetadata/") => match path.strip_suffix("/token") {
            Some(_) => world.key(None, google).await,
            None => "googleapis.com".into_response(),
        },
        "/msi" => world.key(None, msi).await,
        "/latest/api/token" => {
            let ttl = HeaderName::from_static("x-aws-ec2-metadata-token-ttl-seconds");
            ([(ttl, "21600")], "token").into_response()
        }
        "/latest/meta-data/iam/security-credentials/" => "role".into_response(),
        "/latest/meta-data/placement/region" => {
            world.seen().regions += 1;
            world.key(None, |_, _| "eu-north-1".to_owned()).await
        }
        "/federation/credentials" => world.key(token("x-amz-sso_bearer_token"), sso).await,
        "/" => {
            let token = text.split('&').find_map(|part| part.strip_prefix("WebIdentityToken=")).map(str::to_owned);
            world.key(token, sts).await
        }
        _ => world.key(None, json).await,
    }
}

impl Inner {
    /// Gives the key that the caller's token names, or else the one of the source.
    async fn key(&self, token: Option<String>, form: fn(&str, SystemTime) -> String) -> Response {
        let mut source = self.source.subscribe();
        self.seen().asked += 1;
        self.changed.notify_all();
        let now = *source.borrow_and_update();
        match now {
            Source::Gives(key, life) => {
                let key = token.as_deref().unwrap_or(key);
                form(key, SystemTime::now() + life).into_response()
            }
            Source::Fails | Source::Closes => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            Source::IsSilent => {
                let _ = source.changed().await;
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }

    /// The answer of a service to a read with a token: there is nothing.
    fn bearer(&self, headers: &HeaderMap, nothing: &'static str) -> Response {
        let header = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let token = header.strip_prefix("Bearer ").unwrap_or_default();
        let token = issuer(token).unwrap_or_else(|| token.to_owned());
        let mut seen = self.seen();
        if !seen.accepted.iter().any(|accepted| *accepted == token) {
            return StatusCode::UNAUTHORIZED.into_response();
        }
        *seen.by.entry(token).or_default() += 1;
        self.changed.notify_all();
        (StatusCode::NOT_FOUND, nothing).into_response()
    }

    /// An API server with Leases.
    fn lease(&self, method: &Method, path: &str, headers: &HeaderMap, body: &Bytes) -> Response {
        let missing = self.bearer(headers, NO_LEASE);
        if missing.status() == StatusCode::UNAUTHORIZED {
            return missing;
        }
        let mut seen = self.seen();
        let Ok(mut lease) = serde_json::from_slice::<Value>(body) else {
            return seen.objects.get(path).map_or(missing, |(_, lease)| lease.clone().into_response());
        };
        let named = |name: &Value| format!("{path}/{}", name.as_str().unwrap_or_default());
        let path = if *method == Method::POST { named(&lease["metadata"]["name"]) } else { path.to_owned() };
        let former = seen.objects.get(&path).map_or(0, |(version, _)| *version);
        let expected = lease["metadata"]["resourceVersion"].as_str().map_or(0, |version| version.parse().unwrap());
        if former != expected {
            return StatusCode::CONFLICT.into_response();
        }
        lease["metadata"]["uid"] = "uid".into();
        lease["metadata"]["resourceVersion"] = (former + 1).to_string().into();
        let lease = Bytes::from(lease.to_string());
        seen.objects.insert(path, (former + 1, lease.clone()));
        lease.into_response()
    }

    fn store(&self, method: &Method, path: &str, headers: &HeaderMap, body: Bytes) -> Response {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let key = header("authorization").split_once("Credential=").and_then(|(_, rest)| rest.split_once('/'));
        let key = key.map_or("", |(key, _)| key).to_owned();
        let mut seen = self.seen();
        if !seen.accepted.iter().any(|accepted| *accepted == key) {
            return error(seen.refusal.0, seen.refusal.1);
        }
        *seen.by.entry(key).or_default() += 1;
        self.changed.notify_all();
        let missing = error(404, "NoSuchKey");
        seen.object(method, path, headers, body).unwrap_or(missing)
    }

    /// A container of Azure.
    fn blob(&self, method: &Method, path: &str, headers: &HeaderMap, body: Bytes) -> Response {
        let missing = self.bearer(headers, "");
        if missing.status() == StatusCode::UNAUTHORIZED {
            return missing;
        }
        let missing = ([("x-ms-error-code", "BlobNotFound")], missing).into_response();
        let mut answer = self.seen().object(method, path, headers, body).unwrap_or(missing);
        if *method == Method::PUT && answer.status() == StatusCode::OK {
            *answer.status_mut() = StatusCode::CREATED;
        }
        answer
    }
}

impl Seen {
    /// Reads an object, or writes it if its version is the one that is demanded. `None` if there is nothing to read.
    fn object(&mut self, method: &Method, path: &str, headers: &HeaderMap, body: Bytes) -> Option<Response> {
        let expected = headers.get("if-match").and_then(|value| value.to_str().ok());
        let present = self.objects.get(path).cloned();
        let etag = |version: u64| format!("\"{version}\"");
        Some(match *method {
            Method::GET => {
                let (version, body) = present?;
                ([("etag", etag(version))], body).into_response()
            }
            Method::PUT => {
                let version = present.map(|(version, _)| version);
                if version.map(etag).as_deref() != expected {
                    return Some(error(412, "PreconditionFailed"));
                }
                let next = version.unwrap_or_default() + 1;
                self.objects.insert(path.to_owned(), (next, body));
                [("etag", etag(next))].into_response()
            }
            _ => StatusCode::NO_CONTENT.into_response(),
        })
    }
}

pub(crate) const NO_LEASE: &str = r#"{"kind":"Status","reason":"NotFound","details":{"kind":"leases"},"code":404}"#;

fn error(status: u16, code: &str) -> Response {
    let body = if code.is_empty() { String::new() } else { format!("<Error><Code>{code}</Code></Error>") };
    (StatusCode::from_u16(status).unwrap(), body).into_response()
}

/// The form of the metadata service and of containers.
pub(crate) fn json(key: &str, until: SystemTime) -> String {
    let until = humantime::format_rfc3339_seconds(until);
    format!(
        r#"{{"Code":"Success","Type":"AWS-HMAC","Version":1,"LastUpdated":"2026-01-01T00:00:00Z","AccessKeyId":"{key}",
        "SecretAccessKey":"hidden","Token":"token","SessionToken":"token","Expiration":"{until}"}}"#
    )
}

fn sts(key: &str, until: SystemTime) -> String {
    let until = humantime::format_rfc3339_seconds(until);
    format!(
        "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>
        <AccessKeyId>{key}</AccessKeyId><SecretAccessKey>hidden</SecretAccessKey><SessionToken>token</SessionToken>
        <Expiration>{until}</Expiration>
        </Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
    )
}

fn google(token: &str, until: SystemTime) -> String {
    let life = until.duration_since(SystemTime::now()).unwrap_or_default().as_secs();
    let kind = "urn:ietf:params:oauth:token-type:access_token";
    format!(r#"{{"access_token":"{token}","issued_token_type":"{kind}","token_type":"Bearer","expires_in":{life}}}"#)
}

fn entra(token: &str, until: SystemTime) -> String {
    let life = until.duration_since(SystemTime::now()).unwrap_or_default().as_secs();
    format!(r#"{{"token_type":"Bearer","expires_in":{life},"ext_expires_in":{life},"access_token":"{token}"}}"#)
}

fn msi(token: &str, until: SystemTime) -> String {
    let until = until.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    format!(r#"{{"access_token":"{token}","expires_on":"{until}","token_type":"Bearer","resource":"r"}}"#)
}

/// The form of `az account get-access-token`.
pub(crate) fn az(token: &str, until: SystemTime) -> String {
    let until = until.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    format!(r#"{{"accessToken":"{token}","expires_on":{until},"tokenType":"Bearer"}}"#)
}

/// The account that has signed a token itself.
fn issuer(token: &str) -> Option<String> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    Some(serde_json::from_slice::<Value>(&claims).ok()?["iss"].as_str()?.to_owned())
}

fn sso(key: &str, until: SystemTime) -> String {
    let until = until.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    format!(
        r#"{{"roleCredentials":{{"accessKeyId":"{key}","secretAccessKey":"hidden","sessionToken":"token","expiration":{until}}}}}"#
    )
}
