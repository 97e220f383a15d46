//! `leaderelect lease-api`: serves Leases of Kubernetes out of a store.

mod also;

use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use leaderelection_lease_api::{LeaseApi, Namespaces};
use leaderelection_peers::sockets::Connections;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::args::timing::{duration, pause};
use crate::commands::serve::metrics;
use crate::exit::{Exit, Failure};
use crate::lock::PrefixUrl;
use crate::output::Output;
use crate::pages::http::{AccessArgs, Ending, Server, Token, framed, thread};

/// Serve Leases of Kubernetes out of a store: electors in Go, Java, Python and C# elect without a cluster
#[derive(Debug, clap::Args)]
#[command(long_about = ABOUT, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// The folder of the Leases, such as s3://bucket/leases or file:///directory/leases. The Lease NAME of the namespace
    /// NAMESPACE is the lock FOLDER/NAMESPACE/NAME
    #[arg(long, value_name = "FOLDER-URL", value_parser = PrefixUrl::parser(), required = true)]
    store: Vec<PrefixUrl>,
    /// Keep every Lease in this folder, too, from which electors move to that of --store: lease://NAMESPACE/ for the Leases
    /// of a namespace of a cluster, of which no others are written then. An elector holds both or none
    #[arg(long, value_name = "FOLDER-URL", value_parser = PrefixUrl::parser())]
    also: Option<PrefixUrl>,
    /// Write a kubeconfig with the address of this server into this file
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<PathBuf>,
    /// The pause between two listings of the store while somebody watches Leases
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = pause)]
    watch_interval: Duration,
    /// The time for which everything is answered after SIGTERM while /readyz fails, so that clients find another server. A
    /// second signal ends it
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    drain: Duration,
    #[command(flatten)]
    access: AccessArgs,
}

/// The most connections at a time. A moment of the thread for each is less than a retry period.
const MOST_CONNECTIONS: usize = 4096;

const ABOUT: &str = "\
Serve Leases of Kubernetes out of a store: electors in Go, Java, Python and C# elect without a cluster

Answers what an API server answers about Leases (coordination.k8s.io/v1). An elector needs one other line: the address \
of its API server. `kubectl` works, too. The lock of a Lease is the same as that of run, serve and the library, so all \
of them compete for it, and status, list, dashboard and transfer show and change it.

Nothing is kept here, so any number of these servers can serve one folder: one beside each program, or one on each \
machine. A renewal is one write to the store.

The annotation leaderelection/token of a Lease is the fencing token. It grows with each term, and never falls, whatever a \
client writes. A deleted Lease leaves a record with the token.

A line of --token-file may name namespaces behind the token, with commas between them: then the token is for the Leases \
of these only. /livez and /readyz are open. /metrics is for Prometheus.

--also is for the second of three rollouts, in which electors move from one folder to another, or from the Leases of a \
cluster to a folder, without two leaders and without a gap. The guide is docs/migrating.md.";

const EXAMPLES: &str = "\
Examples:
  Beside a program on the same machine:
    leaderelect lease-api --store s3://bucket/leases --kubeconfig kubeconfig
    kubectl --kubeconfig kubeconfig get leases --all-namespaces --watch
  For electors that move away from the cluster's Leases:
    leaderelect lease-api --store s3://bucket/leases --also lease://default/
  For other machines:
    openssl rand -hex 32 > token
    leaderelect lease-api --store s3://bucket/leases --listen 0.0.0.0:4040 \\
        --tls-cert cert.pem --tls-key key.pem --token-file token";

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let [folder] = &args.store[..] else {
        let message = format!(
            "--store is given {} times, and a Lease is in one folder, or in two while electors move to it (--also); for a lock in \
             several stores, compete with serve --lock",
            args.store.len()
        );
        return Err(Failure::usage(message));
    };
    let (server, token, signals) = Server::bind(&args.access, &args.access.hosts.with([]))?;
    // Each elector has a connection, and one that is closed while it asks has lost a request.
    let _ = Connections::of_process_up_to(MOST_CONNECTIONS);
    let metrics = metrics::install()?;
    // The connections to the store belong to the runtime that serves.
    let (new, old) = (folder.clone(), args.also.clone());
    let store = thread::of_servers()?.spawn(async move { also::open(&new, old.as_ref()).await });
    let store = store.await.map_err(|error| Failure::internal(format!("cannot open the store: {error}")))??;
    let api = LeaseApi::new(store, also::folder_of(folder.prefix())).with_watch_interval(args.watch_interval);
    if let Some(path) = &args.kubeconfig {
        if !server.url().starts_with("http") {
            return Err(Failure::usage(
                "--kubeconfig needs --listen with an address: clients of Kubernetes open no socket",
            ));
        }
        write(path, &kubeconfig(server.url(), &args.access, token.as_ref()))?;
    }
    output.say(format_args!("serving {}", server.url()));
    let too = args.also.as_ref().map(|old| format!(", and of {old} too")).unwrap_or_default();
    output.say(format_args!("the Leases are those of {folder}{too}"));
    let mut ending = Ending::new(signals, &server, token.clone(), folder.to_string(), output);
    let content = [(axum::http::header::CONTENT_TYPE, metrics::CONTENT)];
    let routes = Router::new().route("/metrics", get(move || async move { (content, metrics.render()) }));
    let draining = CancellationToken::new();
    let routes = routes.merge(api.routes()).layer(from_fn_with_state(token, only_with_token));
    let routes = routes.layer(from_fn_with_state(draining.clone(), sent_away_while_draining));
    let running = server.start(framed(routes))?;
    let result = tokio::select! {
        biased;
        () = drained(&mut ending, &draining, args.drain, output) => Ok(Exit::Done),
        failure = running.failed() => Err(failure),
    };
    running.finish().await;
    result
}

/// Completes when the server should end.
async fn drained(ending: &mut Ending, draining: &CancellationToken, drain: Duration, output: &Output) {
    ending.told().await;
    draining.cancel();
    let time = humantime::format_duration(drain);
    output
        .say(format_args!("answering for another {time}, so that clients find another server; once more to stop now"));
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

/// Lets a request pass with what its token is for. Probes need none.
async fn only_with_token(State(token): State<Option<Token>>, mut request: Request, next: Next) -> Response {
    let Some(token) = token.filter(|_| !["/livez", "/readyz", "/healthz"].contains(&request.uri().path())) else {
        return next.run(request).await;
    };
    let headers = request.headers().clone();
    match token.scope_of(&headers) {
        Some(None) => token.keep_watch(headers, next.run(request).await),
        Some(Some(namespaces)) if request.uri().path() != "/metrics" => {
            request.extensions_mut().insert(Namespaces(namespaces));
            token.keep_watch(headers, next.run(request).await)
        }
        _ => {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Unauthorized",
                "message": "show a token of --token-file", "code": 401,
            });
            (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, r#"Bearer realm="leaderelect""#)], Json(status))
                .into_response()
        }
    }
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
