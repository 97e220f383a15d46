//! The answers of a server.

use leaderelection::{DefaultLeaderElector, LeaderCallbacks, LeaderElectionConfig, ObjectLock};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::lies::{ask, request};
use crate::support::{FOREVER, KEY, Node, Store, serving, url};

const STREAM: &str = "text/event-stream";

fn body(answer: &str) -> Value {
    serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap()
}

#[tokio::test]
async fn a_leader_says_what_its_store_shows() {
    let store = Store::default();
    let a = Node::start(&store, "a");
    a.leads().await;
    for query in ["?nonce=abc123", "?nonce=abc123&lock=locks/scheduler", "?nonce=abc123&lock=locks%2Fscheduler"] {
        let answer = ask(&url(&a.peers), query).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("cache-control: no-store"), "{answer}");
        let said = body(&answer);
        assert_eq!((said["leading"].as_bool(), said["lock"].as_str()), (Some(true), Some(KEY)));
        assert_eq!((said["holder"].as_str(), said["term"].as_u64()), (Some("a"), Some(1)));
        assert_eq!(said["record"]["holderIdentity"], "a");
        assert_eq!((said["nonce"].as_str(), said["counter"].as_u64()), (Some("abc123"), Some(0)));
        assert_eq!(said["mac"].as_str().map(str::len), Some(64));
        assert!(said["version"].is_string() && said["number"].as_u64() >= Some(1));
    }
    for (query, status) in
        [("?lock=other", "404"), ("?nonce=a%20b", "400"), (&format!("?nonce={}", "x".repeat(65)), "400")]
    {
        let answer = ask(&url(&a.peers), query).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
    assert!(ask(&url(&a.peers).replace("leadership", "x"), "x").await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn who_does_not_lead_says_so_and_nothing_else() {
    let store = Store::default();
    let (a, b) = (Node::start(&store, "a"), Node::start(&store, "b"));
    a.leads().await;
    let answer = ask(&url(&b.peers), "?nonce=x").await;
    assert!(answer.starts_with("HTTP/1.1 409 Conflict\r\n"), "{answer}");
    assert_eq!(body(&answer), serde_json::json!({ "leading": false }));
    // The moment counts at which the question is asked.
    assert!(a.handle.step_down());
    assert!(ask(&url(&a.peers), "").await.starts_with("HTTP/1.1 409"));
}

#[tokio::test]
async fn who_does_not_know_the_key_is_told_nothing() {
    let store = Store::default();
    let a = Node::start(&store, "a");
    a.leads().await;
    let asked = |query: &str| request(query, "*/*").replace("host:", "connection: close\r\nhost:");
    let of_another_question = asked("?nonce=other").replace("nonce=other", "nonce=n");
    let asked = asked("?nonce=n");
    let (without, _) = asked.split_once("leaderelection-code: ").unwrap();
    for request in [of_another_question, format!("{without}\r\n")] {
        let mut stream = TcpStream::connect(a.peers.listens_at().unwrap()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        assert!(answer.contains("the key") && !answer.contains("holder") && !answer.contains(KEY), "{answer}");
    }
}

#[tokio::test]
async fn a_stream_tells_of_every_renewal_and_of_the_release() {
    let store = Store::default();
    let a = Node::start(&store, "a");
    a.leads().await;
    let at = url(&a.peers);
    let (told, first) = tokio::sync::oneshot::channel();
    let stream = tokio::spawn(async move {
        let mut told = Some(told);
        let mut stream = TcpStream::connect(at.trim_start_matches("http://").split('/').next().unwrap()).await.unwrap();
        stream.write_all(request("?nonce=n", STREAM).as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        while stream.read_buf(&mut bytes).await.unwrap() > 0 {
            let text = String::from_utf8_lossy(&bytes);
            if text.matches("event: renewal").count() >= 3
                && let Some(told) = told.take()
            {
                told.send(()).unwrap();
            }
            if text.contains("event: end") && text.ends_with("0\r\n\r\n") {
                break;
            }
        }
        String::from_utf8(bytes).unwrap()
    });
    first.await.unwrap();
    a.stop().await;
    let text = stream.await.unwrap();
    let said: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|json| serde_json::from_str(json).unwrap())
        .collect();
    let (last, renewals) = said.split_last().unwrap();
    for (counter, (renewal, next)) in renewals.iter().zip(&said[1..]).enumerate() {
        assert_eq!(renewal["counter"], counter);
        assert!(renewal["leading"] == true && renewal["number"].as_u64() < next["number"].as_u64(), "{text}");
        assert_ne!(renewal["record"]["writeId"], next["record"]["writeId"]);
    }
    assert_eq!((&last["leading"], &last["record"]["holderIdentity"]), (&Value::Bool(false), &Value::from("")));
    assert_eq!((&last["holder"], &last["term"]), (&Value::from("a"), &Value::from(1)));
    assert_eq!(last["record"]["writeId"].as_str(), store.record().await.write_id.as_deref());
}

#[tokio::test]
async fn there_are_so_many_streams_and_no_more() {
    let store = Store::default();
    let a = Node::start(&store, "a");
    a.leads().await;
    let at = url(&a.peers);
    let mut open = Vec::new();
    for _ in 0..256 {
        let mut stream = TcpStream::connect(a.peers.listens_at().unwrap()).await.unwrap();
        stream.write_all(request("", STREAM).as_bytes()).await.unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        open.push(stream);
    }
    let mut refused = TcpStream::connect(a.peers.listens_at().unwrap()).await.unwrap();
    refused.write_all(request("", STREAM).as_bytes()).await.unwrap();
    let mut first = [0; 12];
    refused.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 503");
    assert!(ask(&at, "").await.starts_with("HTTP/1.1 200"), "a question is answered all the same");
    assert!(a.handle.is_leader());
    // A stream that ends leaves its place.
    open.clear();
    let start = tokio::time::Instant::now();
    while start.elapsed() < FOREVER {
        let mut stream = TcpStream::connect(a.peers.listens_at().unwrap()).await.unwrap();
        stream.write_all(request("", STREAM).as_bytes()).await.unwrap();
        stream.read_exact(&mut first).await.unwrap();
        if &first == b"HTTP/1.1 200" {
            return;
        }
    }
    panic!("no place was left");
}

#[tokio::test]
async fn one_server_or_a_router_serves_many_locks() {
    let peers = serving();
    let store = Store::default();
    let elector = |key: &str| {
        let lock = ObjectLock::new(store.clone(), key, "a");
        DefaultLeaderElector::new(LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).build().unwrap())
    };
    let (one, two) = (elector("one"), elector("two"));
    let attached = peers.attach(&one).unwrap();
    let _two = peers.attach(&two).unwrap();
    let error = peers.attach(&elector("one")).unwrap_err();
    assert!(error.to_string().contains("\"one\"") && error.to_string().contains("attached already"), "{error}");
    let _other = peers.attach_as(&elector("one"), "east/one").unwrap();
    assert!(ask(&url(&peers), "?lock=one").await.starts_with("HTTP/1.1 409"));
    assert!(ask(&url(&peers), "?lock=east/one").await.starts_with("HTTP/1.1 409"));
    assert!(ask(&url(&peers), "").await.starts_with("HTTP/1.1 404"), "of several locks, one has to be named");
    drop(attached);
    assert!(ask(&url(&peers), "?lock=one").await.starts_with("HTTP/1.1 404"));
    let _again = peers.attach(&one).unwrap();

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = format!("http://{}", listener.local_addr().unwrap());
    let router = peers.router();
    tokio::spawn(async move { axum::serve(listener, router).await });
    assert!(ask(&at, "?lock=two").await.starts_with("HTTP/1.1 409"));
}
