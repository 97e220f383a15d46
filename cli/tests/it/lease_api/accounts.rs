//! Service accounts, whom a cluster or an issuer knows, and the refusals of everybody else.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use leaderelection_integration_tests::servers::tls::TlsFront;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{LEASES, lease, lease_api, send};
use crate::serve::sidecar::Sidecar;
use crate::support::{Place, end_of};

const ELECTOR: &str = "system:serviceaccount:web:elector";
const AUDIENCE: &str = "leases";
const SHARED: &[u8] = b"a secret that an issuer should not publish";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// Serves on a port of its own, and returns the URL.
async fn serve(routes: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    url
}

/// The command, with the roles of accounts.
fn with_roles(place: &Place, roles: &str) -> Command {
    let tokens = place.path("tokens");
    std::fs::write(&tokens, format!("the-token-for-all-namespaces\n{roles}")).unwrap();
    let mut command = lease_api(&place.file("leases"), "127.0.0.1:0");
    command.arg("--token-file").arg(&tokens);
    command
}

fn kubeconfig(url: &str, path: &Path) {
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": url}}],
        "users": [{"name": "a", "user": {"token": "of-the-server"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    });
    std::fs::write(path, kubeconfig.to_string()).unwrap();
}

/// The answers of a cluster, by token, and what it was asked.
#[derive(Clone, Default)]
struct Cluster {
    answers: Arc<Mutex<BTreeMap<String, (u16, Value)>>>,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Cluster {
    fn says(&self, token: &str, code: u16, status: Value) {
        self.answers.lock().unwrap().insert(token.to_owned(), (code, json!({"kind": "TokenReview", "status": status})));
    }

    fn user(&self, token: &str, name: &str, audiences: &[&str]) {
        let status = json!({"authenticated": true, "user": {"username": name}, "audiences": audiences});
        self.says(token, 201, status);
    }

    async fn review(State(cluster): State<Self>, Json(review): Json<Value>) -> (StatusCode, Json<Value>) {
        let token = review["spec"]["token"].as_str().unwrap().to_owned();
        cluster.asked.lock().unwrap().push(review);
        let answer = cluster.answers.lock().unwrap().get(&token).cloned();
        let (code, body) = answer.unwrap_or((201, json!({"status": {"user": {}, "error": "[invalid bearer token]"}})));
        (StatusCode::from_u16(code).unwrap(), Json(body))
    }
}

#[tokio::test]
async fn a_cluster_tells_whose_a_token_is_and_the_roles_of_the_name_count() {
    let place = Place::new();
    let cluster = Cluster::default();
    let url = serve(Router::new().route(REVIEWS, post(Cluster::review)).with_state(cluster.clone())).await;
    kubeconfig(&url, &place.path("kubeconfig"));
    let roles = format!("{ELECTOR} default,web:read\nsystem:serviceaccounts:batch web:read\n");
    let mut command = with_roles(&place, &roles);
    command.env("KUBECONFIG", place.path("kubeconfig")).args(["--token-review", "--token-audience", AUDIENCE]);
    let server = Sidecar::spawn(command.arg("--audit-log").arg(place.path("audit"))).await;
    let (elector, reader, stranger) = ("eyJelector.a.b", "eyJreader.a.b", "eyJstranger.a.b");
    cluster.user(elector, ELECTOR, &[AUDIENCE]);
    cluster.user(reader, "system:serviceaccount:batch:any", &[AUDIENCE, "another"]);
    cluster.user(stranger, "system:serviceaccount:other:any", &[AUDIENCE]);
    cluster.user("eyJadmin.a.b", "admin", &[AUDIENCE]);
    cluster.user("eyJaudience.a.b", ELECTOR, &["another"]);
    cluster.user("eyJunaware.a.b", ELECTOR, &[]);
    cluster.says("eyJdown.a.b", 500, json!({}));
    cluster.says("eyJdenied.a.b", 403, json!({}));
    cluster.says("eyJstrange.a.b", 200, Value::Null);

    assert_eq!(send(&server, Method::POST, LEASES, elector, &lease("a")).await.0, 201);
    let of_web = LEASES.replace("default", "web");
    for (token, method, path, status) in [
        (elector, Method::GET, &of_web, 200),
        (elector, Method::POST, &of_web, 403),
        (reader, Method::GET, &of_web, 200),
        (reader, Method::POST, &of_web, 403),
        (stranger, Method::GET, &of_web, 403),
        ("eyJadmin.a.b", Method::GET, &of_web, 403),
        (elector, Method::GET, &"/metrics".to_owned(), 401),
        // Whoever knows the name of an account, or has a token for something else, is nobody.
        (ELECTOR, Method::GET, &of_web, 401),
        ("eyJaudience.a.b", Method::GET, &of_web, 401),
        ("eyJunaware.a.b", Method::GET, &of_web, 401),
        ("eyJnobody.a.b", Method::GET, &of_web, 401),
        // Who cannot know lets nobody in.
        ("eyJdown.a.b", Method::GET, &of_web, 503),
        ("eyJdenied.a.b", Method::GET, &of_web, 503),
        ("eyJstrange.a.b", Method::GET, &of_web, 503),
    ] {
        let body = if method == Method::POST { lease("a") } else { Value::Null };
        let (found, said) = send(&server, method.clone(), path, token, &body).await;
        assert_eq!(found, status, "{token} {method} {path}: {said}");
    }
    let (_, said) = send(&server, Method::GET, LEASES, "eyJdenied.a.b", &Value::Null).await;
    assert!(said["message"].as_str().unwrap().contains("system:auth-delegator"), "{said}");
    let attributes = json!({"group": "coordination.k8s.io", "resource": "leases", "namespace": "web"});
    for (verb, is_allowed) in [("list", true), ("update", false)] {
        let mut review = json!({"spec": {"resourceAttributes": attributes}});
        review["spec"]["resourceAttributes"]["verb"] = verb.into();
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        assert_eq!(send(&server, Method::POST, path, elector, &review).await.1["status"]["allowed"], is_allowed);
    }
    let log = std::fs::read_to_string(place.path("audit")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&log).unwrap()["caller"], ELECTOR);
    // One review for many requests, and none for a token that cannot be an account's.
    let asked = cluster.asked.lock().unwrap().clone();
    let spec = |token: &str| json!({"token": token, "audiences": [AUDIENCE]});
    assert_eq!(asked.iter().filter(|review| review["spec"] == spec(elector)).count(), 1);
    assert!(asked.iter().all(|review| review["spec"]["token"].as_str().unwrap().starts_with("eyJ")), "{asked:?}");
}

#[tokio::test]
async fn accounts_need_roles_a_cluster_and_an_issuer_with_tls() {
    let place = Place::new();
    kubeconfig("http://127.0.0.1:1", &place.path("kubeconfig"));
    let mut command = with_roles(&place, &format!("{ELECTOR} web\n"));
    let server = Sidecar::spawn(command.arg("--token-review").env("KUBECONFIG", place.path("kubeconfig"))).await;
    let (status, said) = send(&server, Method::GET, LEASES, "eyJ.a.b", &Value::Null).await;
    assert_eq!((status, &said["reason"]), (503, &json!("ServiceUnavailable")), "nobody answers: {said}");
    assert_eq!(send(&server, Method::GET, LEASES, "the-token-for-all-namespaces", &Value::Null).await.0, 200);
    let issuer = ["--oidc-issuer-url", "http://127.0.0.1:1", "--token-audience", AUDIENCE];
    for (options, problem) in [
        (&issuer[..], "does not begin with https://"),
        (&issuer[..2], "--token-audience"),
        (&["--token-review", "--token-file", "/nowhere"], "/nowhere"),
    ] {
        let mut command = lease_api(&place.file("leases"), "127.0.0.1:0");
        if !options.contains(&"--token-file") {
            command.arg("--token-file").arg(place.path("tokens"));
        }
        let refused = end_of({
            command.args(options);
            command
        });
        assert!(refused.stderr.contains(problem), "{options:?}: {refused:?}");
    }
    let mut command = lease_api(&place.file("leases"), "127.0.0.1:0");
    command.arg("--token-review");
    assert_eq!(end_of(command).code, Some(64), "without roles");
}

/// The keys of an issuer.
struct Signer(EncodingKey);

impl Signer {
    fn new() -> Self {
        let made = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        Self(EncodingKey::from_ec_der(&made.serialize_der()))
    }

    fn key(&self, kid: &str) -> Jwk {
        let mut key = Jwk::from_encoding_key(&self.0, Algorithm::ES256).unwrap();
        key.common.key_id = Some(kid.to_owned());
        key
    }

    fn sign(&self, kid: Option<&str>, claims: &Value) -> String {
        let mut header = Header::new(Algorithm::ES256);
        header.kid = kid.map(str::to_owned);
        encode(&header, claims, &self.0).unwrap()
    }
}

fn with_shared_secret(kid: &str, claims: &Value) -> String {
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some(kid.to_owned());
    encode(&header, claims, &EncodingKey::from_secret(SHARED).unwrap()).unwrap()
}

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

#[tokio::test]
async fn an_issuer_signs_tokens_of_accounts_and_no_other_token_counts() {
    let place = Place::new();
    let (signer, stranger) = (Signer::new(), Signer::new());
    // What the issuer says depends on its address, which is not known before it listens.
    let documents = Arc::<Mutex<BTreeMap<&str, Value>>>::default();
    let document = |name: &'static str| {
        let documents = Arc::clone(&documents);
        get(async move || Json(documents.lock().unwrap()[name].clone()))
    };
    let routes = Router::new()
        .route("/.well-known/openid-configuration", document("discovery"))
        .route("/keys", document("keys"));
    let front = TlsFront::start(&serve(routes).await, &["http/1.1"], &place.path("")).await;
    let issuer = front.url();
    documents.lock().unwrap().extend([
        ("discovery", json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")})),
        ("keys", json!({"keys": [signer.key("a"), {"kid": "shared", "kty": "oct", "k": BASE64_URL_SAFE_NO_PAD.encode(SHARED)}]})),
    ]);
    let options = ["--oidc-issuer-url", &issuer, "--token-audience", AUDIENCE];
    let mut command = with_roles(&place, &format!("{ELECTOR} default\n"));
    let server = Sidecar::spawn(command.args(options).arg("--oidc-ca-file").arg(front.certificate())).await;
    let claims =
        json!({"iss": issuer, "sub": ELECTOR, "aud": [AUDIENCE, "another"], "exp": now() + 600, "nbf": now() - 5});
    let with = |field: &str, value: Value| {
        let mut claims = claims.clone();
        claims[field] = value;
        claims
    };
    let right = signer.sign(Some("a"), &claims);
    assert_eq!(send(&server, Method::POST, LEASES, &right, &lease("a")).await.0, 201);
    let part = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let [_, body, signature] = right.split('.').collect::<Vec<_>>()[..] else { panic!("{right}") };
    let shared = json!({"alg": "HS256", "kid": "a"});
    let tampered = right.replace(body, &part(with("sub", "system:serviceaccount:web:admin".into())));
    for (why, token) in [
        ("another issuer", signer.sign(Some("a"), &with("iss", "https://elsewhere".into()))),
        ("expired", signer.sign(Some("a"), &with("exp", (now() - 120).into()))),
        ("not yet", signer.sign(Some("a"), &with("nbf", (now() + 120).into()))),
        ("without an end", signer.sign(Some("a"), &with("exp", Value::Null))),
        ("another audience", signer.sign(Some("a"), &with("aud", "another".into()))),
        ("without an audience", signer.sign(Some("a"), &with("aud", Value::Null))),
        ("an unknown key", stranger.sign(Some("b"), &claims)),
        ("no key", signer.sign(None, &claims)),
        ("the name of another's key", stranger.sign(Some("a"), &claims)),
        ("tampered with", tampered),
        ("no algorithm", format!("{}.{body}.", part(json!({"alg": "none", "kid": "a"})))),
        ("no algorithm, and a signature", format!("{}.{body}.{signature}", part(json!({"alg": "none", "kid": "a"})))),
        ("an algorithm with shared secrets", format!("{}.{body}.{signature}", part(shared))),
        ("a shared secret, which everybody knows", with_shared_secret("shared", &claims)),
        ("no token", "eyJ.a.b".to_owned()),
    ] {
        let (status, said) = send(&server, Method::GET, LEASES, &token, &Value::Null).await;
        assert_eq!((status, &said["reason"]), (401, &json!("Unauthorized")), "{why}: {said}");
    }
    let no_role = signer.sign(Some("a"), &with("sub", "system:serviceaccount:web:another".into()));
    assert_eq!(send(&server, Method::GET, LEASES, &no_role, &Value::Null).await.0, 403);

    // Nobody has fetched its keys yet, and it is gone.
    let mut command = with_roles(&place, &format!("{ELECTOR} default\n"));
    let server = Sidecar::spawn(command.args(options)).await;
    let (status, said) = send(&server, Method::GET, LEASES, &right, &Value::Null).await;
    assert_eq!(status, 503, "its certificate is not trusted: {said}");
    assert!(said["message"].as_str().unwrap().contains("cannot fetch"), "{said}");
}
