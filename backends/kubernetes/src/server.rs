//! Requests to the API server about the objects of one kind in a namespace, and its answers.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::client::ConfigExt as _;
use kube::config::AuthProviderConfig;
use kube::{Client, Config};
use leaderelection::StoreError;
use leaderelection_store_support::request::answer::{LOADED_ANEW, UNREADABLE_ANSWER, retry_after, with_code};
use leaderelection_store_support::request::fresh::Fresh;
use leaderelection_store_support::request::{self, Body, Operation, Words, broke_off, failed, is_about_certificates};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::client::{NoClient, new_client};
use crate::command::{self, Certificate};
use crate::error;
use crate::tokens::{Again, Shown, Tokens};

/// The largest answer about one Lease, in bytes. The record has a limit of its own. The rest of a Lease is not ours:
/// Kubernetes allows 256 KiB of annotations alone, and their JSON is longer.
const MOST_OF_A_LEASE: usize = 1024 * 1024;

/// The largest page of a listing, in bytes.
const MOST_OF_A_PAGE: usize = 16 * 1024 * 1024;

/// The version of the API that has Leases.
pub(crate) const LEASES: &str = "coordination.k8s.io/v1";

/// The number of Leases in a page.
const PAGE: u16 = 100;

/// The option of a write that puts the name of this library into the `managedFields` of an object.
const FIELD_MANAGER: &str = "&fieldManager=leaderelection";

/// A client that sends each request once, and the source of its tokens and certificates.
#[derive(Clone)]
pub(crate) struct Connection {
    client: Fresh<Client>,
    tokens: Arc<Tokens>,
}

/// Creates a client that sets no limits of its own. `again` reads the configuration anew for another client, and after a token or
/// a certificate was refused. A command of the kubeconfig does not run yet: the first request waits for it, as for an API server.
pub(crate) fn connection(config: Config, again: Again) -> Result<Connection, NoClient> {
    let again = of_one_cluster(again, &config);
    let layer = if has_command(&config) { None } else { config.auth_layer()? };
    let shown = Shown::default();
    let client = Fresh::fixed(new_client(&of_client(config.clone(), None))?);
    let (reader, user) = (Arc::clone(&again), shown.clone());
    let client = client.renewed_by(move || {
        let (again, config, user) = (reader(), config.clone(), user.clone());
        Box::pin(async move { Ok(new_client(&of_client(again.await.unwrap_or(config), user.get()))?) })
    });
    let tokens = Arc::new(Tokens::of(layer.as_ref(), again, shown, client.clone()));
    Ok(Connection { client, tokens })
}

/// Returns `true` if a command runs for a token.
fn has_command(config: &Config) -> bool {
    let of_provider = |provider: &AuthProviderConfig| provider.config.contains_key("cmd-path");
    command::of(&config.auth_info).is_some() || config.auth_info.auth_provider.as_ref().is_some_and(of_provider)
}

/// Reads the configuration anew, for as long as it is of the same cluster: on another, the lock would be another one.
fn of_one_cluster(again: Again, config: &Config) -> Again {
    let cluster = config.cluster_url.clone();
    Arc::new(move || {
        let (config, cluster) = (again(), cluster.clone());
        Box::pin(async move { config.await.filter(|config| config.cluster_url == cluster) })
    })
}

/// Leaves out what a client must not do by itself, and lets it show this certificate if there is one.
fn of_client(mut config: Config, shown: Option<Certificate>) -> Config {
    // Only certificates stay with the client.
    let access = &mut config.auth_info;
    (access.username, access.password) = (None, None);
    (access.token, access.token_file, access.exec, access.auth_provider) = (None, None, None, None);
    if let Some(Certificate { chain, key }) = shown {
        access.client_certificate_data = Some(BASE64.encode(chain));
        access.client_key_data = Some(BASE64.encode(key).into());
    }
    config
}

/// The objects of one kind in one namespace on one API server.
#[derive(Clone)]
pub(crate) struct Server {
    connection: Connection,
    /// The path of all these objects.
    path: String,
    /// The longest time of a request.
    pub(crate) request_timeout: Duration,
}

impl Server {
    pub(crate) fn leases(connection: Connection, namespace: &str) -> Self {
        Self::new(connection, &format!("apis/{LEASES}"), namespace, "leases")
    }

    /// The objects of the kind `plural` of a version of the API, such as `api/v1`.
    pub(crate) fn new(connection: Connection, api: &str, namespace: &str, plural: &str) -> Self {
        let namespace = utf8_percent_encode(namespace, NON_ALPHANUMERIC);
        let path = format!("/{api}/namespaces/{namespace}/{plural}");
        Self { connection, path, request_timeout: request::DEFAULT_TIMEOUT }
    }

    /// The objects of a kind that are in no namespace.
    pub(crate) fn of_cluster(connection: Connection, api: &str, plural: &str) -> Self {
        Self { connection, path: format!("/apis/{api}/{plural}"), request_timeout: request::DEFAULT_TIMEOUT }
    }

    /// Sends one request about the object `name`, or about all if the name is empty.
    pub(crate) async fn send(
        &self,
        method: Method,
        name: &str,
        body: Option<Value>,
        object: &str,
    ) -> Result<Answer, StoreError> {
        let slash = if name.is_empty() { "" } else { "/" };
        let options = if matches!(method, Method::POST | Method::PUT | Method::PATCH) { FIELD_MANAGER } else { "" };
        self.request(method, &format!("{slash}{name}"), options, body, MOST_OF_A_LEASE, object).await
    }

    /// Requests a page of all Leases: the first one, or the one that `token` names.
    pub(crate) async fn list(&self, token: &str, at_most: Option<u16>, object: &str) -> Result<Answer, StoreError> {
        let rest = match token {
            "" => String::new(),
            token => format!("&continue={}", utf8_percent_encode(token, NON_ALPHANUMERIC)),
        };
        let limit = at_most.map_or(PAGE, |at_most| at_most.clamp(1, PAGE));
        self.request(Method::GET, "", &format!("&limit={limit}{rest}"), None, MOST_OF_A_PAGE, object).await
    }

    async fn request(
        &self,
        method: Method,
        name: &str,
        options: &str,
        body: Option<Value>,
        limit: usize,
        object: &str,
    ) -> Result<Answer, StoreError> {
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        // Zero would mean the API server's own limit.
        let millis = self.request_timeout.as_millis().max(1);
        let content_type = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{name}?timeout={millis}ms{options}", self.path))
            .header(USER_AGENT, request::USER_AGENT)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, content_type)
            .body(kube::client::Body::from(body))
            .map_err(|error| error::unanswered(object, &kube::Error::HttpError(error)))?;
        let connection = &self.connection;
        if let Some(token) =
            connection.tokens.header().await.map_err(|problem| error::without_token(object, &problem))?
        {
            request.headers_mut().insert(AUTHORIZATION, token);
        }
        let asked = connection.client.ask(object, async |client| {
            let response = client.send(request).await.map_err(|error| error::unanswered(object, &error))?;
            let status = response.status().as_u16();
            let is_loaded_anew = status == 401 && connection.tokens.refused();
            let wait = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).and_then(retry_after);
            let content = content(object, response, limit).await;
            Ok(Answer { status, is_loaded_anew, retry_after: wait, content })
        });
        let answer = asked.await;
        if answer.as_ref().is_err_and(is_about_certificates) {
            connection.tokens.refused();
        }
        answer
    }
}

/// Receives the body of an answer.
async fn content(object: &str, response: Response<kube::client::Body>, limit: usize) -> Result<Bytes, StoreError> {
    let length = response.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let mut response = response.into_body();
    let mut body = Body::new(object, limit, length)?;
    while let Some(frame) = response.frame().await {
        if let Ok(data) = frame.map_err(|error| broke_off(object, Words::of_error(&error)))?.into_data() {
            body.push(&data)?;
        }
    }
    Ok(body.finish())
}

/// An answer of the API server, or of a proxy on the way.
pub(crate) struct Answer {
    status: u16,
    /// The API server has refused a token that has served, and the next request has another.
    is_loaded_anew: bool,
    retry_after: Option<Duration>,
    content: Result<Bytes, StoreError>,
}

impl Answer {
    /// Returns `true` if the API server says that the Lease does not exist.
    pub(crate) fn is_missing_lease(&self) -> bool {
        self.status == 404 && self.content.as_ref().is_ok_and(|text| error::Said::of(text).is_about("leases"))
    }

    /// The JSON of a successful answer about something else than a Lease, or the status and the API server's own words.
    pub(crate) fn accepted(self) -> Result<Value, (u16, String)> {
        let text = self.content.unwrap_or_default();
        match self.status {
            200..300 => Ok(serde_json::from_slice(&text).unwrap_or_default()),
            status => Err((status, error::Said::of(&text).message)),
        }
    }

    /// The JSON of a successful answer.
    pub(crate) fn content(self, operation: Operation, object: &str) -> Result<Value, StoreError> {
        if self.is_loaded_anew {
            return Err(failed(object, with_code(LOADED_ANEW, self.status, ""), None));
        }
        if !(200..300).contains(&self.status) {
            let text = self.content.unwrap_or_default();
            return Err(error::explain(operation, object, self.status, &text).with_retry_after(self.retry_after));
        }
        serde_json::from_slice(&self.content?)
            .map_err(|_| failed(object, with_code(UNREADABLE_ANSWER, self.status, ""), None))
    }
}
