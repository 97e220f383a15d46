//! The metrics of `run`.

use reqwest::StatusCode;

use crate::support::{CLIENT, LONG, Place, Running, run};

/// The status and the body of an answer.
pub(crate) fn ask(url: &str) -> (StatusCode, String) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let answer = CLIENT.get(url).send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    })
}

#[test]
fn prometheus_sees_who_leads_and_who_waits() {
    let place = Place::new();
    let lock = place.lock("a");
    let candidate = |identity| {
        let more = ["--campaign", "--metrics-listen", "127.0.0.1:0", "--identity", identity];
        let command = ["sh", "-c", "echo up; exec sleep 1000"];
        let mut running = Running::start(&run(&lock, &[&LONG[..], &more].concat(), &command));
        let url = running.wait_for_note("serving ");
        (running, url)
    };
    let (mut leader, url) = candidate("node-1");
    leader.wait_for("up");
    let (status, metrics) = ask(&url);
    assert_eq!(status, StatusCode::OK);
    let says = |metrics: &str, value: &str| {
        let mut lines = metrics.lines().filter(|line| line.starts_with("leader_election_master_status{"));
        lines.any(|line| line.ends_with(value))
    };
    assert!(says(&metrics, " 1"), "{metrics}");
    assert!(metrics.contains("# HELP leader_election_terms_total"), "{metrics}");
    assert_eq!(ask(&url.replace("/metrics", "/leader")).0, StatusCode::NOT_FOUND);

    let (mut waiting, url) = candidate("node-2");
    waiting.wait_for_note("node-1 leads");
    let (_, metrics) = ask(&url);
    assert!(says(&metrics, " 0"), "{metrics}");
}

#[test]
fn slots_have_metrics_too() {
    let place = Place::new();
    let lock = place.lock("a");
    let more = ["--slots", "2", "--metrics-listen", "127.0.0.1:0"];
    let mut running =
        Running::start(&run(&lock, &[&LONG[..], &more].concat(), &["sh", "-c", "echo up; exec sleep 1000"]));
    let url = running.wait_for_note("serving ");
    running.wait_for("up");
    let (_, metrics) = ask(&url);
    assert!(metrics.contains("leader_election_"), "{metrics}");
}

#[test]
fn an_address_in_use_does_not_stop_a_job_and_is_used_when_free() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let options = [&LONG[..], &["--metrics-listen", &address]].concat();
    let lock = place.lock("a");
    let mut running = Running::start(&run(&lock, &options, &["sh", "-c", "echo up; exec sleep 1000"]));
    running.wait_for_note("another port with --metrics-listen");
    running.wait_for("up");
    drop(taken);
    let url = running.wait_for_note("serving ");
    assert_eq!(ask(&url).0, StatusCode::OK);
}
