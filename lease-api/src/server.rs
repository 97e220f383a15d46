//! The paths of the API.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, UPGRADE};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use leaderelection::implement::ConditionalStore;
use serde_json::json;
use tokio::time::Instant;

use crate::audit::{Audit, AuditEvent};
use crate::body;
use crate::caller::{Caller, Role};
use crate::discovery;
use crate::form::Form;
use crate::lease::is_name;
use crate::leases::{Leases, after, patience};
use crate::listed::Listed;
use crate::object::Place;
use crate::pace::Pace;
use crate::parts::{self, Parts};
use crate::query::{Continue, Query};
use crate::quota::Quota;
use crate::served::Served;
use crate::shares::{Share, Shares, Tenant, Work};
use crate::shown::Scope;
use crate::status::{API_VERSION, Failure, GROUP, KIND};
use crate::verbs;
use crate::watch::{Listings, Page, SLOWEST};

/// The Leases of a store, for a server of HTTP. Everything that matters is in the store, so any number of servers can serve
/// one store.
///
/// ```
/// use leaderelection::MemoryStore;
/// use leaderelection_lease_api::LeaseApi;
///
/// let routes: axum::Router = LeaseApi::new(MemoryStore::new(), "leases/").routes();
/// ```
#[derive(Clone, Debug)]
pub struct LeaseApi {
    leases: Arc<Leases>,
    pause: Duration,
    audit: Audit,
    most_leases: usize,
}

impl LeaseApi {
    /// The pause between two listings of the store while somebody watches, unless
    /// [`with_watch_interval`](Self::with_watch_interval) sets another.
    pub const DEFAULT_WATCH_INTERVAL: Duration = Duration::from_secs(2);

    /// The number of Leases that a namespace may have, unless [`with_max_leases`](Self::with_max_leases) sets another.
    pub const DEFAULT_MAX_LEASES: usize = 10_000;

    /// Serves the Leases whose keys begin with `prefix`: the Lease `web` of the namespace `default` is at
    /// `PREFIXdefault/web`. A prefix that is a folder ends with a slash.
    #[must_use]
    pub fn new(store: impl ConditionalStore, prefix: impl Into<String>) -> Self {
        let leases = Arc::new(Leases::new(Arc::new(store), prefix.into()));
        let (pause, most_leases) = (Self::DEFAULT_WATCH_INTERVAL, Self::DEFAULT_MAX_LEASES);
        Self { leases, pause, audit: Audit::default(), most_leases }
    }

    /// Sets the pause between two listings of the store while somebody watches. Each costs what the store asks for one
    /// listing, and a read of each Lease that has changed.
    #[must_use]
    pub fn with_watch_interval(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Sets the number of Leases that a namespace may have, deleted ones included, whose tokens are kept. They are counted for
    /// each 64 that are new or large, so a server may let as many more pass; and they may take 4 KiB each on average. A write
    /// beyond this is answered with 403.
    #[must_use]
    pub fn with_max_leases(mut self, most: usize) -> Self {
        self.most_leases = most;
        self
    }

    /// Calls `tell` with each write that was committed, or may have been. It is called before the answer, so it must not block for
    /// long.
    #[must_use]
    pub fn with_audit(mut self, tell: impl Fn(&AuditEvent) + Send + Sync + 'static) -> Self {
        self.audit = Audit(Some(Arc::new(tell)));
        self
    }

    /// The name of the place of the Leases for people. It contains no secrets.
    #[must_use]
    pub fn describe(&self) -> String {
        self.leases.describe()
    }

    /// The routes of the API. Whoever serves them limits the heads of requests and the connections, and lets in whom it
    /// trusts; bodies have a limit of 64 KiB here.
    ///
    /// Dropping the future of an answer abandons the answer, not a write that was sent.
    pub fn routes(&self) -> Router {
        let listings = Arc::new(Listings::new(Arc::clone(&self.leases), self.pause));
        let (leases, audit, quota) = (Arc::clone(&self.leases), self.audit.clone(), Quota::new(self.most_leases));
        let served = Served { leases, listings, shares: Shares::default(), audit, quota };
        Router::new().fallback(answer).with_state(Arc::new(served))
    }
}

fn verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    }
}

/// Answers a request, counts it, and measures its time.
async fn answer(State(served): State<Arc<Served>>, request: Request) -> Response {
    let (began, verb) = (Instant::now(), verb(request.method()));
    let mut response = served.answer(request).await.unwrap_or_else(|failure| {
        if failure.is_of_server() {
            tracing::warn!(problem = failure.message(), "cannot answer a request");
        }
        failure.into_response()
    });
    response.headers_mut().entry(CACHE_CONTROL).or_insert(axum::http::HeaderValue::from_static("no-store"));
    let code = response.status().as_u16().to_string();
    metrics::counter!("leaderelection_lease_api_requests_total", "verb" => verb, "code" => code).increment(1);
    metrics::histogram!("leaderelection_lease_api_request_duration_seconds", "verb" => verb)
        .record(began.elapsed().as_secs_f64());
    response
}

impl Served {
    async fn answer(&self, request: Request) -> Result<Response, Failure> {
        let began = Instant::now();
        let (parts, body) = request.into_parts();
        let path: Vec<&str> = parts.uri.path().split('/').filter(|part| !part.is_empty()).collect();
        let query = Query::parse(parts.uri.query().unwrap_or_default())?;
        let caller = parts.extensions.get::<Caller>();
        let (headers, method) = (&parts.headers, &parts.method);
        if headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
            return Err(Failure::no_impersonation());
        }
        let deadline = after(began, patience(query.timeout, None));
        let (namespace, name) = match *path {
            ["apis", GROUP, "v1", "leases"] => (None, None),
            ["apis", GROUP, "v1", "namespaces", namespace, "leases"] => (Some(namespace), None),
            ["apis", GROUP, "v1", "namespaces", namespace, "leases", name] => (Some(namespace), Some(name)),
            ["api", "v1", "namespaces", namespace, "events"]
            | ["apis", "events.k8s.io", "v1", "namespaces", namespace, "events"]
                if *method == Method::POST =>
            {
                Caller::check(caller, Some(namespace), Role::Write)?;
                let (tenant, place) = (Tenant::of(caller, Some(namespace)), place(namespace, ""));
                let (body, _share) = self.receive(body, &tenant, &place, deadline).await?;
                let event = verbs::event(&body, headers)?;
                return Ok((StatusCode::CREATED, Json(event)).into_response());
            }
            ["apis", "authorization.k8s.io", "v1", "selfsubjectaccessreviews"] if *method == Method::POST => {
                let (tenant, place) = (Tenant::of(caller, None), place("", ""));
                let (body, _share) = self.receive(body, &tenant, &place, deadline).await?;
                let review = Caller::review(caller, body::object(&body, body::content_type(headers), false)?)?;
                return Ok((StatusCode::CREATED, Json(review)).into_response());
            }
            ["readyz"] if *method == Method::GET => {
                self.leases.probe(deadline).await?;
                return Ok("ok".into_response());
            }
            ["livez" | "healthz"] if *method == Method::GET => return Ok("ok".into_response()),
            _ => {
                let found = discovery::at(&path).filter(|_| *method == Method::GET);
                return found.map(|found| Json(found).into_response()).ok_or_else(Failure::no_path);
            }
        };
        if let Some(namespace) = namespace.filter(|namespace| !is_name(namespace)) {
            return Err(Failure::bad_request(format!("{namespace:?} is no namespace")));
        }
        let verb = verb(method);
        Caller::check(caller, namespace, if verb == "get" { Role::Read } else { Role::Write })?;
        let tenant = Tenant::of(caller, namespace);
        let (namespace, is_collection) = match (verb, namespace) {
            ("get", _) if name.is_none() => {
                let (form, namespace) = (Form::of(headers, query.included)?, namespace.map(str::to_owned));
                let wants_websocket =
                    headers.get(UPGRADE).is_some_and(|asked| asked.as_bytes().eq_ignore_ascii_case(b"websocket"));
                // The head of a request keeps the buffer of its connection, and a thousand watches may wait for a listing.
                drop(parts);
                return Box::pin(self.list(namespace, &tenant, query, form, wants_websocket, deadline)).await;
            }
            ("create" | "delete", Some(namespace)) if name.is_none() => (namespace, true),
            ("get" | "update" | "patch" | "delete", Some(namespace)) if name.is_some() => (namespace, false),
            _ => return Err(Failure::no_method()),
        };
        if let Some(name) = name.filter(|name| !is_name(name)) {
            return Err(Failure::not_found(name));
        }
        // Before anything is written.
        let (form, place) = (Form::of(headers, query.included)?, place(namespace, name.unwrap_or_default()));
        let (body, _share) = self.receive(body, &tenant, &place, deadline).await?;
        let request = verbs::Request { served: self, caller, verb, place, query: &query, headers, body, began };
        // What waits for its turn, as a thousand watches may, has no room for the work of a write.
        let (status, object) = match verb {
            "create" => Box::pin(request.create()).await?,
            "update" => Box::pin(request.update()).await?,
            "patch" => Box::pin(request.patch()).await?,
            "delete" if is_collection => return Box::pin(self.delete_all(request, &tenant, deadline)).await,
            "delete" => {
                return Box::pin(request.delete(&request.deletion()?)).await.map(|status| Json(status).into_response());
            }
            _ => (StatusCode::OK, request.get().await?),
        };
        Ok((status, Json(form.alone(&object))).into_response())
    }

    /// Receives a body. Returns it with the share of the tenant that a large one takes, or one about a large Lease.
    async fn receive(
        &self,
        body: Body,
        tenant: &Tenant,
        place: &Place,
        deadline: Instant,
    ) -> Result<(Bytes, Option<Share>), Failure> {
        let is_large = |size: usize| size > Work::LARGE;
        let length = body.size_hint().upper().and_then(|most| usize::try_from(most).ok());
        let share = if length.is_none_or(is_large) || is_large(self.leases.last_size(place)) {
            Some(self.shares.take(tenant, Work::Large, deadline).await?)
        } else {
            None
        };
        Ok((body::receive(body, deadline).await?, share))
    }

    /// Deletes the Leases of a namespace that the query selects, and answers with those that it has deleted.
    async fn delete_all(
        &self,
        request: verbs::Request<'_>,
        tenant: &Tenant,
        deadline: Instant,
    ) -> Result<Response, Failure> {
        let (options, query) = (request.deletion()?, request.query);
        let scope = Some(request.place.namespace.clone());
        let Page { mut found, version, share, .. } =
            self.listings.answer(&scope, query, (&self.shares, tenant), deadline).await?;
        found.truncate(query.limit.unwrap_or(found.len()));
        // The listing says what would come of it.
        let is_dry_run = request.is_dry_run(&options);
        let mut pace = Pace::default();
        for listed in found.iter().filter(|_| is_dry_run) {
            pace.spend(listed.size()).await;
            listed.object().map_or(Ok(()), |object| verbs::check_preconditions(&object, &options))?;
        }
        // Each has a time of its own: all together may take longer than a lease.
        let deleted = found.iter().filter(|_| !is_dry_run);
        let places: Vec<Place> = deleted.map(|listed| (**listed.place()).clone()).collect();
        let one = |place| verbs::Request { place, began: Instant::now(), ..request.clone() };
        let delete = |place| async { one(place).delete(&options).await };
        let mut deletions = stream::iter(places).map(delete).buffer_unordered(DELETIONS);
        while let Some(deleted) = deletions.next().await {
            deleted.map(drop).or_else(|failure| if failure.is_of_nothing() { Ok(()) } else { Err(failure) })?;
        }
        drop(deletions);
        let head = format!(
            r#"{{"kind":"{KIND}List","apiVersion":"{API_VERSION}","metadata":{{"resourceVersion":"{version}"}},"items":["#
        );
        let content = [(CONTENT_TYPE, "application/json")];
        Ok((content, parts::body((), |parts| send(head, found, Form::Lease, Some(share), parts))).into_response())
    }

    async fn list(
        &self,
        namespace: Scope,
        tenant: &Tenant,
        query: Query,
        form: Form,
        wants_websocket: bool,
        deadline: Instant,
    ) -> Result<Response, Failure> {
        query.check_versions()?;
        // Java's own client asks for `h2c` with every first request, and goes on without it.
        if query.watch && wants_websocket {
            // A client that asks for a WebSocket takes any other complete answer for a refusal. fabric8 then watches
            // without one: after 200 at once, after 503 when it has tried for 19 seconds.
            return Ok(StatusCode::OK.into_response());
        }
        let content = [(CONTENT_TYPE, "application/json")];
        let tenant = (&self.shares, tenant);
        if query.watch {
            let events = self.listings.watch(namespace, query, deadline, form, tenant).await?;
            return Ok((content, events).into_response());
        }
        let page = self.listings.answer(&namespace, &query, tenant, deadline).await?;
        let Page { mut found, version, share, is_small } = page;
        let share = Some(share).filter(|_| !is_small);
        let rest = query.limit.map_or(0, |limit| found.len().saturating_sub(limit));
        found.truncate(found.len().saturating_sub(rest));
        let mut metadata = json!({"resourceVersion": version});
        if let Some(last) = found.last().filter(|_| rest > 0) {
            metadata["continue"] = Continue { version, behind: (**last.place()).clone() }.text().into();
            // As an API server, which does not count what a selector leaves out.
            if query.selector.is_empty() {
                metadata["remainingItemCount"] = rest.into();
            }
        }
        let (head, items) = form.list();
        let head = head.to_string();
        let head = format!("{},\"metadata\":{metadata},\"{items}\":[", head.trim_end_matches('}'));
        Ok((content, parts::body((), |parts| send(head, found, form, share, parts))).into_response())
    }
}

/// The number of Leases that are deleted at a time.
const DELETIONS: usize = 16;

/// The size of a part of a listing, in bytes.
const PART: usize = 16 * 1024;

/// Sends a listing, of which `part` is the text before the items. Only one part of it is in memory as text.
async fn send(
    mut part: String,
    found: Vec<Arc<Listed>>,
    form: Form,
    _share: Option<Share>,
    parts: Parts,
) -> Option<()> {
    let limit = after(Instant::now(), SLOWEST);
    for (number, object) in found.into_iter().filter_map(|listed| listed.object()).enumerate() {
        part.push_str(if number > 0 { "," } else { "" });
        part.push_str(&form.item(&object).to_string());
        if part.len() >= PART {
            parts.send(std::mem::take(&mut part).into(), limit).await?;
        }
    }
    parts.send((part + "]}").into(), limit).await?;
    parts.end().await
}

fn place(namespace: &str, name: &str) -> Place {
    Place { namespace: namespace.to_owned(), name: name.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use axum::http::HeaderValue;
    use axum::http::header::USER_AGENT;
    use futures_util::FutureExt as _;
    use leaderelection::MemoryStore;

    use super::*;

    fn served() -> Served {
        let api = LeaseApi::new(MemoryStore::new(), "leases/");
        let listings = Arc::new(Listings::new(Arc::clone(&api.leases), api.pause));
        Served { leases: api.leases, listings, shares: Shares::default(), audit: api.audit, quota: Quota::new(1) }
    }

    #[test]
    fn a_request_that_waits_takes_little_memory() {
        let served = served();
        let size = size_of_val(&served.answer(Request::new(Body::empty())));
        assert!(size < 4096, "{size}");
    }

    #[tokio::test]
    async fn a_watch_that_waits_keeps_nothing_of_its_head() {
        let (served, later) = (served(), after(Instant::now(), SLOWEST));
        let mut shares = Vec::new();
        for _ in 0..4 {
            shares.push(served.shares.take(&Tenant::of(None, Some("a")), Work::Listing, later).await.unwrap());
        }
        // As hyper has them: parts of the buffer of the connection.
        let buffer = Bytes::from(vec![b'a'; 64]);
        let agent = HeaderValue::from_maybe_shared(buffer.clone()).unwrap();
        let target = format!("/apis/{GROUP}/v1/namespaces/a/leases?watch=1");
        let request = Request::get(target).header(USER_AGENT, agent).body(Body::empty()).unwrap();
        let mut answer = pin!(served.answer(request));
        assert!(!buffer.is_unique());
        assert!(answer.as_mut().now_or_never().is_none());
        assert!(buffer.is_unique());
        shares.clear();
        assert_eq!(answer.await.unwrap().status(), StatusCode::OK);
    }
}
