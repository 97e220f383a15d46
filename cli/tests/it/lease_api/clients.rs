//! Electors of others, as they are, on the real server: killed and frozen, with a lost answer, behind a balancer that sends a
//! write twice, and while the server starts again.

use leaderelection_integration_tests::proxy::sign::unsigned;
use leaderelection_integration_tests::proxy::{Delivery, Exchange, Fault, Proxy, Reply, Request};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::drivers::{self, Candidate, Driver, Fleet};
use super::{LEASES, lease_api, send};
use crate::guides::guide;
use crate::peers::own_address;
use crate::serve::process::eventually;
use crate::serve::sidecar::Sidecar;

async fn lease(server: &Sidecar) -> Value {
    send(server, Method::GET, &format!("{LEASES}/web"), "", &Value::Null).await.1
}

fn token(lease: &Value) -> u64 {
    lease["metadata"]["annotations"]["leaderelection/token"].as_str().unwrap().parse().unwrap()
}

fn holder(lease: &Value) -> &str {
    lease["spec"]["holderIdentity"].as_str().unwrap()
}

fn is_write(request: &Request) -> bool {
    [Method::PUT, Method::PATCH].contains(&request.method)
}

/// A write that is committed and of which the client knows.
fn is_renewal(exchange: &Exchange) -> bool {
    is_write(&exchange.request) && exchange.told == Some(200)
}

fn renewals(traffic: &[Exchange]) -> usize {
    traffic.iter().filter(|exchange| is_renewal(exchange)).count()
}

/// Candidates of one driver. Each reaches the server through a network that can lose an answer.
struct Stage {
    fleet: Fleet,
    server: Sidecar,
}

impl Stage {
    async fn start(&self, name: &str) -> (Candidate, Proxy) {
        let proxy = Proxy::start(self.server.url(), unsigned()).await;
        (self.fleet.start(name, &proxy.url()), proxy)
    }

    /// Waits until one of these leads and the Lease says so. Returns its name and the Lease.
    async fn led_by(&self, names: &[&str]) -> (String, Value) {
        let leader = self.fleet.works(names).await;
        let held = lease(&self.server).await;
        assert!(!self.fleet.driver.names_holder || holder(&held) == leader, "{leader}: {held}");
        (leader, held)
    }
}

/// Lets candidates lead in turn. Asserts that none works beside another, but for one that was frozen.
async fn elect(driver: Driver) {
    let Some(fleet) = Fleet::of(driver, "web") else { return };
    let server = Sidecar::spawn(&mut lease_api(&fleet.place.file("leases"), &own_address())).await;
    if driver.needs_lease {
        let empty = json!({"metadata": {"name": "web"}, "spec": {}});
        assert_eq!(send(&server, Method::POST, LEASES, "", &empty).await.0, 201);
    }
    let mut stage = Stage { fleet, server };
    let (killed, _network) = stage.start("killed").await;
    let (_, first) = stage.led_by(&["killed"]).await;
    let (one, two) = (stage.start("one").await, stage.start("two").await);
    for (_, network) in [&one, &two] {
        network.wait_for("both have asked", |traffic| !traffic.is_empty()).await;
    }
    killed.signal(Signal::KILL);
    let (leader, second) = stage.led_by(&["one", "two"]).await;
    assert!(token(&second) > token(&first) && holder(&second) != holder(&first), "{first} {second}");
    let ((leads, network), (other, _network)) = if leader == "one" { (&one, &two) } else { (&two, &one) };

    // The first write of a term may be followed by another at once.
    let begun = network.traffic().len();
    let rest = network.wait_for("it renews twice", |traffic| renewals(&traffic[begun..]) >= 2).await;
    let last = rest.iter().rposition(|exchange| is_write(&exchange.request)).unwrap();
    let begun = last + 1;
    let traffic = network.wait_for("it renews thrice", |traffic| renewals(&traffic[begun..]) >= 3).await;
    // A later write may not be answered yet.
    let (third, _) = traffic[begun..].iter().enumerate().filter(|(_, exchange)| is_renewal(exchange)).nth(2).unwrap();
    assert_eq!(third + 1, driver.requests * 3, "requests for 3 renewals");

    // The write is committed, and its answer is lost; or a balancer sends it twice, and hands on the second answer.
    for fault in [Fault::new(Delivery::Once, Reply::Cut), Fault::new(Delivery::Twice, Reply::Second)] {
        let seen = network.traffic().len();
        network.spoil(0, is_write, fault);
        network
            .wait_for("a renewal is committed after the fault", |traffic| {
                let spoilt = traffic[seen..].iter().position(|exchange| is_write(&exchange.request));
                spoilt.is_some_and(|spoilt| renewals(&traffic[seen + spoilt + 1..]) > 0)
            })
            .await;
    }
    let listen = stage.server.url().trim_start_matches("http://").to_owned();
    stage.server.signal(Signal::KILL);
    stage.server = Sidecar::spawn(&mut lease_api(&stage.fleet.place.file("leases"), &listen)).await;
    let seen = network.traffic().len();
    network.wait_for("it renews behind the restart", |traffic| renewals(&traffic[seen..]) > 0).await;
    assert_eq!(stage.fleet.works(&["one", "two"]).await, leader, "neither costs a term");
    assert_eq!(token(&lease(&stage.server).await), token(&second));
    assert_eq!(stage.fleet.turns(), ["killed", &leader], "one after the other");

    leads.signal(Signal::STOP);
    let (_, third) = stage.led_by(&[&other.name]).await;
    assert!(token(&third) > token(&second), "{third}");
    let seen = network.traffic().len();
    let entries = stage.fleet.work().len();
    leads.signal(Signal::CONT);
    // It asks, and does not get the Lease back. An elector that does not read the clock works on for a while.
    let is_told = |exchange: &Exchange| exchange.request.method == Method::GET && exchange.told == Some(200);
    network.wait_for("it reads", |traffic| traffic[seen..].iter().any(is_told)).await;
    eventually("the thawed one ends its work", async || {
        let work = stage.fleet.work();
        let late: Vec<_> =
            work[entries..].iter().filter(|entry| entry.worker == leader).map(|entry| entry.at).collect();
        let until = work.last()?.at;
        let is_over = late.last().is_none_or(|last| last + 2_000_000_000 < until);
        let for_so_long = late.last().zip(late.first()).map_or(0, |(last, first)| last - first);
        (is_over && work.len() > entries + 40)
            .then(|| println!("{}: worked for {} ms", driver.name, for_so_long / 1_000_000))
    })
    .await;
    assert_eq!(holder(&lease(&stage.server).await), holder(&third), "{leader} came back");
}

/// The text between two others.
fn between<'a>(text: &'a str, before: &str, behind: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no {before:?}"));
    rest.split_once(behind).map_or(rest, |(found, _)| found).trim()
}

#[test]
fn the_table_of_the_page_has_the_versions_and_requests_of_these_tests() {
    let page = guide("docs/any-language.md");
    let [go, java, python, rust] = ["go/go.mod", "java/pom.xml", "python/requirements.txt", "rust/Cargo.lock"]
        .map(|path| guide(&format!("comparison/drivers/{path}")));
    let crate_of =
        |name: &str| between(between(&rust, &format!("name = \"{name}\"\n"), "\n[["), "version = \"", "\"").to_owned();
    let artifact = |name: &str| {
        between(between(&java, &format!("<artifactId>{name}</artifactId>"), "</dependency>"), "<version>", "<")
            .to_owned()
    };
    for (driver, version) in [
        (drivers::CLIENT_GO, between(&go, "k8s.io/client-go v", "\n").to_owned()),
        (drivers::CONTROLLER_RUNTIME, between(&go, "sigs.k8s.io/controller-runtime v", "\n").to_owned()),
        (drivers::FABRIC8, artifact("kubernetes-client")),
        (drivers::JAVA, artifact("client-java-extended")),
        (drivers::PYTHON, between(&python, "kubernetes==", " ").to_owned()),
        (drivers::KUBERT, crate_of("kubert")),
        (drivers::KUBE_LEADER_ELECTION, crate_of("kube-leader-election")),
    ] {
        let row = between(&page, &format!("\n| [{}](", driver.name), "\n").to_owned();
        assert!(row.contains(&format!(") {version} |")), "{version}: {row}");
        let requests = row.rsplit('|').nth(2).unwrap().trim();
        assert_eq!(requests, driver.requests.to_string(), "{row}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_elector_of_the_python_client_elects_on_a_store() {
    elect(drivers::PYTHON).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_elects_on_a_store() {
    elect(drivers::CLIENT_GO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn controller_runtime_elects_on_a_store() {
    elect(drivers::CONTROLLER_RUNTIME).await;
}

#[test]
fn the_recipe_for_the_collector_has_the_version_of_this_test() {
    let version = guide("comparison/drivers/collector/go.mod");
    let version = between(&version, "/extension/k8sleaderelector v", "\n").to_owned();
    assert!(guide("docs/recipes.md").contains(&format!(" with version\n{version}.")), "{version}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_collectors_extension_elects_on_a_store() {
    elect(drivers::COLLECTOR).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fabric8_elects_on_a_store() {
    elect(drivers::FABRIC8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_elector_of_javas_official_client_elects_on_a_store() {
    elect(drivers::JAVA).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kube_leader_election_elects_on_a_store() {
    elect(drivers::KUBE_LEADER_ELECTION).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubert_elects_on_a_store() {
    elect(drivers::KUBERT).await;
}
