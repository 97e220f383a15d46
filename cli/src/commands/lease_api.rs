//! `leaderelect lease-api`: serves Kubernetes Leases out of a store.

mod access;
mod accounts;
mod also;
mod answers;
mod audit;
mod issuer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use leaderelection_lease_api::LeaseApi;
use leaderelection_serving::sockets::Connections;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::args::timing::{duration, pause};
use crate::commands::serve::metrics;
use crate::exit::{Exit, Failure};
use crate::lock::PrefixUrl;
use crate::output::Output;
use crate::pages::http::{AccessArgs, Ending, Server, Token, framed, thread};

/// Serve Kubernetes Leases from an object store
#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Keep the Leases in this folder
    ///
    /// A URL such as s3://bucket/leases or file:///directory/leases. The Lease NAME in NAMESPACE is the lock
    /// FOLDER/NAMESPACE/NAME.
    #[arg(long, value_name = "FOLDER-URL", value_parser = PrefixUrl::parser(), required = true)]
    store: Vec<PrefixUrl>,
    /// Also keep Leases in this folder
    ///
    /// Use it while electors move from this folder to the one of --store; an elector holds both or none. lease://NAMESPACE/
    /// means the Leases of a namespace of a cluster; Leases of other namespaces are then refused.
    #[arg(long, value_name = "FOLDER-URL", value_parser = PrefixUrl::parser())]
    second_folder: Option<PrefixUrl>,
    /// Write a kubeconfig for this server
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<PathBuf>,
    /// Poll this often for watches
    ///
    /// Lists the store while a client watches Leases.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = pause)]
    watch_interval: Duration,
    /// Stop this long after SIGTERM
    ///
    /// Meanwhile /readyz fails, so that clients find another server. A second signal ends it.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    drain: Duration,
    /// Limit Leases per namespace
    ///
    /// Deleted ones count too, because their tokens are kept.
    #[arg(long, value_name = "NUMBER", default_value_t = LeaseApi::DEFAULT_MAX_LEASES)]
    max_leases: usize,
    /// Write a line of JSON for each write
    ///
    /// Each says who has changed which Lease, from which holder to which. - means standard error.
    #[arg(long, value_name = "PATH")]
    audit_log: Option<PathBuf>,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten, next_help_heading = "HTTP")]
    accounts: accounts::AccountArgs,
}

/// The most connections at a time. A moment of the thread for each is less than a retry period.
const MOST_CONNECTIONS: usize = 4096;

/// The time that the audit log has to take its last lines.
const LAST_LINES: Duration = Duration::from_secs(2);

const ABOUT: &str = "\
Serve Kubernetes Leases from an object store, for electors in any language

    leaderelect lease-api --store s3://bucket/leases --kubeconfig kubeconfig

Electors written in Go, Java, Python or C# for Kubernetes elect without a cluster: change only the address of their API \
server. The API is that of coordination.k8s.io/v1 Leases, and `kubectl` works too. A Lease is the same lock that run, serve \
and the library compete for, and status, list, dashboard and transfer work on it.

The server keeps no state, so run any number for one folder: one beside each program, or one per machine. A renewal is one \
write to the store.

The annotation leaderelection/token of a Lease is the fencing token. It grows with each term and never shrinks, whatever a \
client writes. A deleted Lease leaves a record with the token.

In --token-file, a line may list namespaces after the token, separated by commas; the token is then valid only for their \
Leases. Append :read to a namespace to make the token read-only there. `*:read` grants reading in all namespaces; `*` without :read \
is refused. Example: `TOKEN web,batch:read`. Instead of a token, a line may name a service account: see --token-review. \
/livez, /readyz and /healthz need no token. /metrics is for Prometheus.

--second-folder is for the second of three rollouts that move electors from one folder to another, or from a cluster to a \
folder, without two leaders: see docs/migrating.md.";

const EXAMPLES: &str = "\
Examples:
  The Leases, as kubectl shows them:
    kubectl --kubeconfig kubeconfig get leases --all-namespaces --watch
  Electors that move away from the cluster's Leases:
    leaderelect lease-api --store s3://bucket/leases \\
        --second-folder lease://default/
  For other machines:
    openssl rand -hex 32 > token
    leaderelect lease-api --store s3://bucket/leases --listen 0.0.0.0:4040 \\
        --tls-cert cert.pem --tls-key key.pem --token-file token";

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let [folder] = &args.store[..] else {
        let message = format!(
            "expected one --store, found {}; to move electors from one folder to another, use --second-folder; to \
             combine several locks into one, use `leaderelect serve` with several --lock",
            args.store.len()
        );
        return Err(Failure::usage(message));
    };
    let (server, token, signals) = Server::bind(&args.access, &args.access.hosts.with([]))?;
    // Each elector has a connection, and keeps it: one that is closed while it asks has lost a request.
    #[cfg(unix)]
    raise_files();
    let _ = Connections::of_process_for_clients(MOST_CONNECTIONS);
    let metrics = metrics::install()?;
    // The connections to the store belong to the runtime that serves.
    let (new, old) = (folder.clone(), args.second_folder.clone());
    let store = thread::of_servers()?.spawn(async move { also::open(&new, old.as_ref()).await });
    let store = store.await.map_err(|error| Failure::internal(format!("cannot open the store: {error}")))??;
    let accounts = thread::of_servers()?.spawn(args.accounts.open());
    let accounts = accounts.await.map_err(|error| Failure::internal(format!("cannot accept accounts: {error}")))??;
    let access = access::Access { token: token.clone(), accounts: accounts.map(Arc::new) };
    let api = LeaseApi::new(store, also::folder_of(folder.prefix())).with_watch_interval(args.watch_interval);
    let mut api = api.with_max_leases(args.max_leases);
    let audit_log = match args.audit_log {
        Some(path) => Some(audit::AuditLog::start(path.clone()).map_err(|error| {
            Failure::internal(format!("cannot write {}: {error}; check --audit-log", path.display()))
        })?),
        None => None,
    };
    if let Some(log) = audit_log.clone() {
        api = api.with_audit(move |event| log.add(event));
    }
    if let Some(path) = &args.kubeconfig {
        if !server.url().starts_with("http") {
            return Err(Failure::usage(
                "--kubeconfig needs --listen with an address: Kubernetes clients cannot connect to a socket file",
            ));
        }
        write(path, &kubeconfig(server.url(), &args.access, token.as_ref()))?;
    }
    output.say(format_args!("serving {}", server.url()));
    let too = args.second_folder.as_ref().map(|old| format!(" and in {old}")).unwrap_or_default();
    output.say(format_args!("serving the Leases in {folder}{too}"));
    let mut ending = Ending::new(signals, &server, token.clone(), folder.to_string(), output);
    let content = [(axum::http::header::CONTENT_TYPE, metrics::CONTENT)];
    let routes = Router::new().route("/metrics", get(move || async move { (content, metrics.render()) }));
    let draining = CancellationToken::new();
    let routes = routes.merge(api.routes()).layer(from_fn_with_state(access, access::only_with_token));
    let routes = routes.layer(from_fn_with_state(draining.clone(), sent_away_while_draining));
    let running = server.start(framed(routes))?;
    let result = tokio::select! {
        biased;
        () = drained(&mut ending, &draining, args.drain, output) => Ok(Exit::Done),
        failure = running.failed() => Err(failure),
    };
    running.finish().await;
    if let Some(log) = audit_log {
        log.flush(LAST_LINES);
    }
    result
}

/// Lets this process open as many files as all connections need, which may have half of them, if the system allows it.
#[cfg(unix)]
fn raise_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = 2 * MOST_CONNECTIONS as u64;
    // Without a limit there is nothing to raise, and where that is refused, there are fewer connections.
    limit.current = limit.current.map(|now| now.max(limit.maximum.map_or(wanted, |most| most.min(wanted))));
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Completes when the server should end.
async fn drained(ending: &mut Ending, draining: &CancellationToken, drain: Duration, output: &Output) {
    ending.told().await;
    draining.cancel();
    let time = humantime::format_duration(drain);
    output.say(format_args!(
        "shutting down in {time}, so that clients can find another server; repeat the signal to stop now"
    ));
    tokio::select! {
        () = ending.told() => {}
        () = tokio::time::sleep(drain) => {}
    }
}

/// Answers while the server drains, and closes the connection behind each answer: the next one reaches another server.
async fn sent_away_while_draining(State(draining): State<CancellationToken>, request: Request, next: Next) -> Response {
    let mut response = if draining.is_cancelled() && request.uri().path() == "/readyz" {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready: shutting down\n").into_response()
    } else {
        next.run(request).await
    };
    if draining.is_cancelled() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The kubeconfig of a client on this machine. It has paths in the place of secrets.
fn kubeconfig(url: &str, access: &AccessArgs, token: Option<&Token>) -> Value {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string();
    let mut cluster = json!({"server": url.trim_end_matches('/')});
    if let Some(cert) = access.tls_cert.as_deref() {
        cluster["certificate-authority"] = absolute(cert).into();
    }
    let mut user = json!({});
    if let Some(file) = token.and_then(Token::file_of_one) {
        user["tokenFile"] = absolute(file).into();
    }
    let context = json!({"cluster": "leaderelect", "user": "leaderelect", "namespace": "default"});
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "leaderelect",
        "clusters": [{"name": "leaderelect", "cluster": cluster}],
        "users": [{"name": "leaderelect", "user": user}],
        "contexts": [{"name": "leaderelect", "context": context}],
    })
}

fn write(path: &Path, kubeconfig: &Value) -> Result<(), Failure> {
    std::fs::write(path, format!("{kubeconfig:#}\n")).map_err(|error| {
        let problem = format!("cannot write {}: {error}; check --kubeconfig", path.display());
        Failure::internal(problem)
    })
}
