//! The answers of each address, from a leader and from a follower.

use std::collections::BTreeSet;

use reqwest::StatusCode;
use reqwest::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};

use rustix::process::Signal;

use super::process::eventually;
use super::sidecar::{Sidecar, lock_in, serve};
use crate::support::{Place, record};

#[tokio::test]
async fn a_leader_and_a_follower_tell_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let lock = lock_in(directory.path());
    let alpha = Sidecar::start(&lock, "alpha").await;
    let leading = alpha.sees("alpha").await;
    let beta = Sidecar::start(&lock, "beta").await;
    let following = beta.sees("alpha").await;

    assert_eq!((&leading["leading"], &leading["identity"]), (&true.into(), &"alpha".into()));
    assert_eq!((&following["leading"], &following["identity"]), (&false.into(), &"beta".into()));
    for leader in [&leading, &following] {
        assert_eq!((&leader["fencingToken"], &leader["leaseDurationSeconds"]), (&1.into(), &15.0.into()), "{leader}");
        assert!(leader["ageSeconds"].as_f64().unwrap() < 15.0, "{leader}");
        assert!(leader["unchangedForSeconds"].as_f64() >= leader["ageSeconds"].as_f64(), "{leader}");
        assert!(leader["renewTime"].as_str() >= leader["acquireTime"].as_str(), "{leader}");
        assert!(leader["acquireTime"].as_str().unwrap().ends_with('Z'), "{leader}");
    }
    let left = |leader: &serde_json::Value| leader["leftSeconds"].as_f64().unwrap();
    assert!((0.0..=10.0).contains(&left(&leading)), "a leader leads until the renew deadline: {leading}");
    assert!((0.0..=15.0).contains(&left(&following)), "others wait for the whole lease: {following}");

    for sidecar in [&alpha, &beta] {
        assert_eq!(sidecar.ask("/healthz").await, (StatusCode::OK, "ok\n".to_owned()));
        assert_eq!(sidecar.ask("/readyz").await, (StatusCode::OK, "ok\n".to_owned()));
        assert_eq!(sidecar.get("/nothing").await.status(), StatusCode::NOT_FOUND);
    }
    let leading = alpha.get("/leading").await;
    let max_age = leading.headers()[CACHE_CONTROL].to_str().unwrap().strip_prefix("max-age=").unwrap().to_owned();
    let text = leading.text().await.unwrap();
    let good_for = text.strip_prefix("leading\ngood for ").and_then(|rest| rest.strip_suffix(" seconds\n")).unwrap();
    assert_eq!(good_for.split_once('.').unwrap().0, max_age, "rounded down: {text}");
    // These sidecars do not drain, so that a signal ends leadership at once.
    assert_eq!(good_for, "0.000");
    assert_eq!(beta.ask("/leading").await, (StatusCode::SERVICE_UNAVAILABLE, "not leading\n".to_owned()));

    let (_, page) = alpha.ask("/").await;
    assert!(page.contains("<strong><bdi>alpha</bdi></strong> leads. That is this candidate."), "{page}");
    assert!(page.contains("started leading with fencing token 1: the lock was new"), "{page}");
    for text in [
        "<tr><th scope=\"row\">Version</th><td>leaderelect 0.",
        "<td>lease 15s, renew deadline 10s, retry period 200ms, request timeout 2s 500ms</td>",
        "<p>Writes: ",
        "<bdi>alpha</bdi>, token 1</td>",
        "<animate attributeName=\"width\" from=\"",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let page = eventually("beta has seen a renewal", async || {
        let (_, page) = beta.ask("/").await;
        page.contains("<strong><bdi>alpha</bdi></strong> leads. This candidate waits.").then_some(page)
    })
    .await;
    assert!(page.contains("<p>Reads: ") && page.contains("seen</th><td><bdi>alpha</bdi></td>"), "{page}");
}

#[tokio::test]
async fn no_answer_has_the_control_characters_of_a_name() {
    let place = Place::new();
    place.overwrite("a", &record(r"x\u001b[2K\u202etxt\u009b1A", "1h", 7, "1"));
    let sidecar = Sidecar::start(&place.lock("a"), "beta").await;
    sidecar.sees("x\u{1b}[2K\u{202e}txt\u{9b}1A").await;
    let (_, text) = sidecar.ask("/leader").await;
    assert!(text.contains("txt") && !text.trim_end().contains(|c: char| c.is_control() || c == '\u{202e}'), "{text:?}");
}

#[tokio::test]
async fn who_waits_is_told_of_the_next_leader() {
    let directory = tempfile::tempdir().unwrap();
    let lock = lock_in(directory.path());
    let mut alpha = Sidecar::start(&lock, "alpha").await;
    alpha.sees("alpha").await;
    let beta = Sidecar::start(&lock, "beta").await;
    beta.sees("alpha").await;
    let (status, told) = {
        let waits = beta.ask("/leader?wait=60s&after=1");
        alpha.signal(Signal::TERM);
        waits.await
    };
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(status, StatusCode::OK);
    assert_ne!(told["fencingToken"], 1, "{told}");
    assert_eq!(alpha.ended().await.code(), Some(0));
    beta.sees("beta").await;
    let (status, told) = beta.ask("/leader?wait=soon").await;
    assert!(status == StatusCode::BAD_REQUEST && told.contains("such as 15s"), "{told}");
}

#[tokio::test]
async fn the_page_shows_foreign_names_as_text() {
    let directory = tempfile::tempdir().unwrap();
    let lock = lock_in(directory.path());
    let name = r#"<script>alert("1")</script>'&"#;
    let stranger = Sidecar::start(&lock, name).await;
    stranger.sees(name).await;
    let sidecar = Sidecar::start(&lock, "beta").await;
    sidecar.sees(name).await;
    for sidecar in [stranger, sidecar] {
        let answer = sidecar.get("/").await;
        assert_eq!(answer.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        let policy = answer.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; ") && !policy.contains("unsafe"),
            "{policy}"
        );
        let page = answer.text().await.unwrap();
        assert_eq!(page.matches("<script").count(), 1, "only our own: {page}");
        assert!(page.contains("&#60;script&#62;alert(&#34;1&#34;)&#60;/script&#62;&#39;&#38;"), "{page}");
        assert!(!page.contains(name), "{page}");
    }
}

#[tokio::test]
async fn metrics_are_those_of_the_table() {
    let directory = tempfile::tempdir().unwrap();
    let lock = lock_in(directory.path());
    let sidecar = Sidecar::start(&lock, "alpha").await;
    let renewals = format!(r#"leader_election_renewal_duration_seconds_count{{name="{lock}"}} "#);
    let text = eventually("a lease is renewed", async || {
        let (_, text) = sidecar.ask("/metrics").await;
        let count = text.lines().find_map(|line| line.strip_prefix(&renewals))?;
        (count != "0").then_some(text)
    })
    .await;
    let documented: Vec<_> = include_str!("../../../../docs/metrics.md")
        .lines()
        .filter_map(|line| line.strip_prefix("| `leader_election_")?.split_once('`'))
        // The sidecar competes for one lock, without parts, without a session, without peers and without a certificate.
        .filter(|(name, _)| !["parts", "session", "peer", "certificate"].iter().any(|kind| name.starts_with(kind)))
        .map(|(name, row)| (format!("leader_election_{name}"), row.split(" | ").nth(1).unwrap()))
        .collect();
    assert!(documented.len() >= 11, "the table is not found any more");
    for (name, kind) in &documented {
        assert!(text.contains(&format!("# TYPE {name} {kind}\n")), "{name} ({kind}) is missing: {text}");
        assert!(text.contains(&format!("# HELP {name} ")), "{name} has no help: {text}");
    }
    assert!(text.contains(&format!("leader_election_master_status{{name=\"{lock}\"}} 1\n")), "{text}");
    for edge in ["0.005", "1", "10", "+Inf"] {
        let bucket = format!(r#"leader_election_renewal_duration_seconds_bucket{{name="{lock}",le="{edge}"}}"#);
        assert!(text.contains(&bucket), "{bucket}: {text}");
    }
    assert_eq!(sidecar.get("/metrics").await.headers()[CONTENT_TYPE], "text/plain; version=0.0.4; charset=utf-8");
}

#[tokio::test]
async fn a_store_that_never_answered_is_not_ready() {
    let mut command = serve("s3://bucket/lock?region=eu-central-1&endpoint=http://127.0.0.1:1", "alpha");
    let sidecar = Sidecar::spawn(command.envs([("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "key")])).await;
    let page = eventually("the page shows the error", async || {
        Some(sidecar.ask("/").await.1).filter(|page| page.contains("<p class=\"alarm\">The store is unavailable: "))
    })
    .await;
    assert!(page.contains("The leader is unknown: the store is unavailable."), "{page}");
    let (status, reason) = sidecar.ask("/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(reason.contains("the store is unavailable"), "{reason}");
    assert_eq!(sidecar.ask("/healthz").await.0, StatusCode::OK, "it is the store that is not well");
    let leader = sidecar.leader().await;
    assert_eq!((&leader["name"], &leader["leading"]), (&"".into(), &false.into()));
    assert_eq!((&leader["fencingToken"], &leader["ageSeconds"]), (&().into(), &().into()));

    eventually("it has tried a few times", async || {
        let (_, text) = sidecar.ask("/metrics").await;
        let tries = text.lines().filter(|line| line.starts_with("leader_election_store_requests_total{"));
        tries.filter_map(|line| line.rsplit(' ').next()?.parse::<u32>().ok()).any(|tries| tries > 5).then_some(())
    })
    .await;
    let said = eventually("the log tells it", async || {
        Some(sidecar.said()).filter(|said| said.contains("a request to the lock failed"))
    })
    .await;
    // The count of the failures is told after ten seconds. A request without an answer is another error than a refusal.
    let failures = said.lines().filter_map(|line| line.split_once("a request to the lock failed"));
    let told: Vec<_> = failures.filter(|(before, _)| !before.contains("the same error")).collect();
    let errors: BTreeSet<_> = told.iter().map(|(_, error)| error).collect();
    assert!(!told.is_empty() && told.len() == errors.len(), "the same is told once: {said}");
}

#[tokio::test]
async fn a_silent_store_is_reported_with_the_option_to_wait_longer() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let lock = format!("s3://bucket/lock?region=eu-central-1&endpoint=http://{}", silent.local_addr().unwrap());
    let mut command = serve(&lock, "alpha");
    command.args(["--request-timeout", "300ms"]);
    let sidecar = Sidecar::spawn(command.envs([("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "key")])).await;
    eventually("the error is told", async || {
        let (_, page) = sidecar.ask("/").await;
        page.contains("no answer within 300ms (--request-timeout); check the network").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_store_that_goes_away_and_comes_back_is_noticed() {
    let place = Place::new();
    let mut command = serve(&place.lock("a"), "alpha");
    let sidecar = Sidecar::spawn(command.args(["--lease-duration", "6s"])).await;
    sidecar.answers("/leading", StatusCode::OK).await;

    place.cut_off("locks");
    assert_eq!(sidecar.sees("").await["leading"], false);
    let reason = sidecar.answers("/readyz", StatusCode::SERVICE_UNAVAILABLE).await;
    let (_, age) = reason.split_once("the store rejects requests; it last answered ").unwrap();
    assert!(age.split_once("s ago").unwrap().0.parse::<f64>().unwrap() >= 6.0, "not ready after one lease: {reason}");
    assert_eq!(sidecar.ask("/leading").await.0, StatusCode::SERVICE_UNAVAILABLE);
    let leader = sidecar.leader().await;
    assert_eq!((&leader["name"], &leader["holder"]), (&"".into(), &"alpha".into()), "{leader}");
    assert_eq!((&leader["leading"], &leader["fencingToken"]), (&false.into(), &().into()), "{leader}");
    let (_, page) = sidecar.ask("/").await;
    assert!(page.contains("</strong> held the lease when the store last answered, "), "{page}");
    assert!(page.contains("<title>the leader is unknown: the store rejects requests · "), "{page}");
    assert!(page.contains("the lease could not be renewed before the renew deadline"), "{page}");

    place.put_back("locks");
    sidecar.answers("/leading", StatusCode::OK).await;
    sidecar.answers("/readyz", StatusCode::OK).await;
    // A machine that stands still may lose a term of this lease.
    assert_ne!(sidecar.sees("alpha").await["fencingToken"], 1);
}

#[tokio::test]
async fn clients_find_the_address_of_the_leader() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = serve(&lock_in(directory.path()), "alpha");
    command.args(["--advertise", "https://10.0.1.42:8443/health/leadership"]);
    let sidecar = Sidecar::spawn(command.args(["--advertise-to-clients", "https://10.0.1.42/api"])).await;
    assert_eq!(sidecar.sees("alpha").await["address"], "https://10.0.1.42/api");
}
