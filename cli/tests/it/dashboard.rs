//! `leaderelect dashboard`: the real program, asked over real sockets.

use std::process::{Command, Stdio};

use reqwest::{Client, StatusCode};
use rustix::process::Signal;
use serde_json::json;

use crate::peers::own_address;
use crate::serve::process::eventually;
use crate::serve::sidecar::Sidecar;
use crate::support::{Place, record};

/// The command, on a port of its own.
pub(crate) fn dashboard(prefix: &str, refresh: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leaderelect"));
    command.args(["dashboard", prefix, "--listen", &own_address(), "--refresh", refresh]);
    command.env_remove("RUST_LOG").env_remove("LEADERELECTION_HTTP_TOKEN").stdin(Stdio::null());
    command
}

/// Waits until the page contains `text`, and returns the page.
pub(crate) async fn shows(dashboard: &Sidecar, text: &str) -> String {
    eventually(&format!("the page shows {text:?}"), async || {
        Some(dashboard.ask("/").await.1).filter(|page| page.contains(text))
    })
    .await
}

/// The number of requests of a kind that the store has answered.
fn requests(dashboard: &Sidecar, kind: &str) -> usize {
    dashboard.said().matches(&format!("the store answered request=\"{kind}\"")).count()
}

/// Waits for `more` listings.
async fn looks(dashboard: &Sidecar, more: usize) {
    let wanted = requests(dashboard, "list") + more;
    eventually("it looks", async || (requests(dashboard, "list") >= wanted).then_some(())).await;
}

/// Checks that the locks have been read `count` times so far.
///
/// The log may be later than the page: this waits for the reads, and sees in further polls that there are no more.
async fn has_read(dashboard: &Sidecar, count: usize) {
    eventually("it reads", async || (requests(dashboard, "get") >= count).then_some(())).await;
    looks(dashboard, 3).await;
    assert_eq!(requests(dashboard, "get"), count, "{}", dashboard.said());
}

#[tokio::test]
async fn a_poll_costs_one_listing_and_one_read_per_changed_lock() {
    let place = Place::new();
    for name in ["a", "b", "c", "d", "e"] {
        place.overwrite(name, &record("node-1", "1h", 7, "1"));
    }
    // A listing for each browser would be 200, and as many by itself take longer than a busy machine needs for them.
    let dashboard = Sidecar::spawn(dashboard(&place.prefix(), "500ms").arg("-vv")).await;
    has_read(&dashboard, 5).await;
    let client = Client::new();
    let began = requests(&dashboard, "list");
    let mut browsers = tokio::task::JoinSet::new();
    for _ in 0..200 {
        browsers.spawn(client.get(dashboard.url()).send());
    }
    for answer in browsers.join_all().await {
        assert_eq!(answer.unwrap().status(), StatusCode::OK);
    }
    has_read(&dashboard, 5).await;
    assert!(requests(&dashboard, "list") - began < 100, "a browser costs no listing");

    place.overwrite("c", &record("node-2", "1h", 8, "2"));
    shows(&dashboard, "<strong><bdi>node-2</bdi></strong> leads, for ").await;
    has_read(&dashboard, 6).await;
}

#[tokio::test]
async fn the_states_of_locks_follow_their_objects() {
    let place = Place::new();
    place.overwrite("lease", &record("node-1", "2s", 7, "1"));
    place.overwrite("long", &record("node-9", "1h", 3, "1"));
    place.overwrite("photo", "somebody's photo");
    let dashboard = Sidecar::spawn(&mut dashboard(&place.prefix(), "200ms")).await;
    let page = shows(
        &dashboard,
        "Nobody leads: the lease of <strong><bdi>node-1</bdi></strong> has expired, not renewed for ",
    )
    .await;
    assert!(page.contains("<bdi>photo</bdi><span>Nobody can lead: the object is not a record (seen for "), "{page}");
    assert!(
        page.contains("<strong><bdi>node-9</bdi></strong> holds the lease, for ") && page.contains(" (token 3)</span>"),
        "{page}"
    );
    assert!(page.contains("<title>2 in trouble · "), "{page}");
    assert!(page.find("<bdi>photo</bdi>") < page.find("<bdi>long</bdi>"), "{page}");

    place.overwrite("photo", &record("node-2", "1h", 1, "1"));
    place.overwrite("lease", &record("node-3", "1h", 8, "2"));
    let page = shows(&dashboard, "<title>No trouble seen: 3 led, 0 free").await;
    assert!(page.contains("<strong><bdi>node-3</bdi></strong> leads, for "), "{page}");
    let lease = page.split("<bdi>lease</bdi>").nth(1).unwrap().split("</li>").next().unwrap();
    assert!(lease.contains("aria-label=\"Terms: 2\"") && lease.matches("<rect ").count() == 2, "{lease}");

    let asked = record("node-3", "1h", 8, "3").replacen('{', r#"{"preferredHolder":"node-4","#, 1);
    place.overwrite("lease", &asked);
    shows(&dashboard, ", and is asked to hand over to <strong><bdi>node-4</bdi></strong> (token 8)").await;
    place.overwrite("lease", &record("", "1s", 8, "4"));
    shows(&dashboard, "<title>No trouble seen: 2 led, 1 free").await;
    std::fs::remove_dir_all(place.path("locks/long")).unwrap();
    shows(&dashboard, "the object was deleted while <strong><bdi>node-9</bdi></strong> held the lease").await;
}

/// A dashboard that starts after everything has happened.
#[tokio::test]
async fn a_dashboard_shows_the_terms_and_the_jobs_that_ended_before_it_began() {
    let place = Place::new();
    let ended = |host: &str, token: u64, minutes: i64, why: &str, job: &str, result: &str| {
        let time = |minutes| (chrono::Utc::now() - chrono::TimeDelta::minutes(minutes)).to_rfc3339();
        json!({
            "holder": host, "fencingToken": token, "from": time(minutes), "to": time(minutes - 1), "why": why, "job": job,
            "result": result,
        })
    };
    let terms = [
        ended("node-1", 5, 30, "work_finished", "monday", "exit code 0"),
        ended("node-2", 6, 20, "work_failed", "tuesday", "exit code 3"),
    ];
    place.overwrite("nightly", &record("", "1s", 6, "1"));
    place.overwrite("nightly.history", &json!({ "terms": terms }).to_string());
    // Nobody writes beside a lock that does not exist.
    place.overwrite("photo.history", "somebody's photo");
    let dashboard = Sidecar::spawn(dashboard(&place.prefix(), "100ms").arg("-vv")).await;
    let page = shows(&dashboard, "<title>2 in trouble · ").await;
    let nightly = page.split("<bdi>nightly</bdi>").nth(1).unwrap().split("</li>").next().unwrap();
    assert!(
        nightly.contains(
            "Nobody leads: the last work failed on <strong><bdi>node-2</bdi></strong> 19 min ago: exit code 3; "
        ),
        "{nightly}"
    );
    assert!(nightly.contains("aria-label=\"Terms: 2\""), "{nightly}");
    assert!(
        page.contains("<bdi>photo.history</bdi><span>Nobody can lead: the object is not a record (seen for "),
        "{page}"
    );
    assert!(page.contains("<a href=\"jobs\">Jobs</a>"), "{page}");
    let jobs = dashboard.ask("/jobs").await.1;
    assert!(jobs.contains("<title>1 of 2 runs failed · "), "{jobs}");
    let (tuesday, monday) = (jobs.find("<bdi>tuesday</bdi>").unwrap(), jobs.find("<bdi>monday</bdi>").unwrap());
    assert!(
        tuesday < monday
            && jobs.contains("<td>1 min</td><td><strong><bdi>exit code 3; the leader&#39;s work failed</bdi>"),
        "{jobs}"
    );
    assert!(jobs.contains("<bdi>node-1</bdi>, token 5"), "{jobs}");
    // What has not changed is not read again.
    has_read(&dashboard, 3).await;
}

#[tokio::test]
async fn a_lock_of_a_session_has_the_lease_of_its_session() {
    let place = Place::new();
    let time = "2026-02-02T10:15:30.000Z";
    let session = |lease: &str, write_id: &str| {
        json!({
            "holderIdentity": "node-1", "leaseDuration": lease, "acquireTime": time, "renewTime": time,
            "leaderTransitions": 0, "writeId": write_id, "weight": 1, "released": 0,
        })
        .to_string()
    };
    let held = json!({
        "holderIdentity": "node-1", "session": "s1", "acquireTime": time, "leaderTransitions": 7, "writeId": "w",
    });
    place.put("sessions/s1", &session("1h", "1"));
    place.put("locks/a", &held.to_string());
    place.put("locks/b", &held.to_string());
    // The sessions are under the prefix, or beside it.
    for prefix in [place.file(""), place.prefix()] {
        place.put("sessions/s1", &session("1h", &format!("before {prefix}")));
        let dashboard = Sidecar::spawn(dashboard(&prefix, "100ms").arg("-vv")).await;
        let page = shows(&dashboard, "<strong><bdi>node-1</bdi></strong> leads").await;
        assert!(page.contains(" (session <bdi>s1</bdi>, token 7)"), "{page}");
        if prefix == place.file("") {
            has_read(&dashboard, 3).await;
        }
        let progress = r#"{"progress":{"leads":2,"taking":16,"handingOver":0,"waiting":50,"seconds":8},"#;
        place.put("sessions/s1", &session("1h", &format!("after {prefix}")).replacen('{', progress, 1));
        let work = "session <bdi>s1</bdi>, token 7); leads 2, takes 16, hands over 0, 50 wait, for 8.0s";
        let page = shows(&dashboard, work).await;
        assert_eq!(page.matches("<li class=\"good\">").count(), 2, "{page}");
        assert!(page.contains("<title>No trouble seen: 2 led, 0 free"), "a session is no lock: {page}");
    }
}

#[tokio::test]
async fn a_store_that_never_answers_is_told_of() {
    let prefix = "s3://bucket/locks/?region=eu-central-1&endpoint=http://127.0.0.1:1";
    let mut command = dashboard(prefix, "1s");
    command.env("AWS_ACCESS_KEY_ID", "id").env("AWS_SECRET_ACCESS_KEY", "key");
    let dashboard = Sidecar::spawn(&mut command).await;
    let page = shows(&dashboard, "<p class=\"alarm\">").await;
    assert!(
        page.contains("The leader is unknown</strong>: the store is unavailable; the locks have not been listed yet."),
        "{page}"
    );
    assert!(page.contains("<title>Leaders not known · "), "{page}");
    eventually("the log says it", async || {
        dashboard.said().contains("the locks cannot be listed; trying again").then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_token_opens_the_page_and_a_signal_ends_it() {
    const TOKEN: &str = "a-token-that-nobody-else-has-got";
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let mut dashboard = Sidecar::spawn(dashboard(&place.prefix(), "1s").env("LEADERELECTION_HTTP_TOKEN", TOKEN)).await;
    let client = Client::builder().pool_max_idle_per_host(0).build().unwrap();
    for path in ["/", "/page.js", "/page.css"] {
        let url = format!("{}{path}", dashboard.url());
        let refused = client.get(&url).send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{path}");
        assert!(!refused.text().await.unwrap().contains("node-1"), "{path}");
        let shown = client.get(&url).bearer_auth(TOKEN).send().await.unwrap();
        assert_eq!(shown.status(), StatusCode::OK, "{path}");
        let policy = shown.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; ") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(shown.headers()["cache-control"], "no-store");
    }
    let healthy = client.get(format!("{}/healthz", dashboard.url())).send().await.unwrap();
    assert_eq!(healthy.status(), StatusCode::OK);
    dashboard.signal(Signal::TERM);
    assert_eq!(dashboard.ended().await.code(), Some(0), "{}", dashboard.said());
}

#[tokio::test]
async fn a_directory_that_does_not_exist_is_named() {
    let place = Place::new();
    let dashboard = Sidecar::spawn(&mut dashboard(&place.file("lokcs/team/"), "1s")).await;
    let missing = format!("directory {} not found", place.path("lokcs").display());
    eventually("it is named", async || dashboard.said().contains(&missing).then_some(())).await;
}
