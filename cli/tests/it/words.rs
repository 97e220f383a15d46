//! The words that people see at night. Whoever reads one of the views knows who leads, and what to do.

mod moody_s3;
mod scene;
mod table;

use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use self::moody_s3::MoodyS3;
use self::scene::{Scene, has_all, plain, shows};
use self::table::words;
use crate::serve::process::eventually;
use crate::serve::sidecar::{Sidecar, serve};
use crate::support::{LONG, Place, Running, TIMINGS, end, leaderelect, record, run};

/// A record that was last renewed so long ago, by the clock of its holder.
fn renewed(holder: &str, lease: &str, ago: chrono::TimeDelta) -> String {
    let time = (chrono::Utc::now() - ago).to_rfc3339();
    record(holder, lease, 7, "1").replace("2026-02-02T10:15:30.000000Z", &time)
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_under_our_identity() {
    let place = Place::new();
    let scene = Scene::in_place(&place);
    let leader = scene.candidate("alpha", &[]).await;
    leader.sees("alpha").await;
    let other = scene.candidate("alpha", &[]).await;
    scene.sidecar_says(&other, "namesake").await;
    assert!(!other.ask("/").await.1.contains("Nobody"), "somebody leads");
    scene.others_say("namesake").await;
    // The leader is not disturbed, and the other one goes on when it is gone.
    scene.sidecar_says(&leader, "led").await;
    scene.others_say("led").await;
    drop(leader);
    eventually("the other one leads", async || other.leader().await["leading"].as_bool().filter(|leads| *leads)).await;
    assert!(other.ask("/").await.1.contains("That is this candidate."));
}

/// The store is well, until it is in this mood.
async fn a_store_that(cause: &str, changes: impl FnOnce(&mut MoodyS3)) {
    // Its clock is ahead, so that it is in no doubt on a busy machine.
    let mut store = MoodyS3::start(renewed("node-1", "2s", -chrono::TimeDelta::hours(1)), true);
    let scene = Scene::new(store.url("locks/a"), store.url("locks/"));
    let (sidecar, dashboard) = tokio::join!(scene.candidate("beta", &["--lease-duration", "3s"]), scene.dashboard());
    sidecar.sees("node-1").await;
    eventually("the dashboard has seen it", async || dashboard.ask("/").await.1.contains("node-1").then_some(())).await;
    let mut watch = scene.watch();
    watch.wait_for_line("node-1 holds the lease");
    changes(&mut store);
    scene.commands_say(cause);
    watch.wait_for_line_of(&words(cause, "watch"));
    scene.sidecar_says(&sidecar, cause).await;
    shows(&dashboard, "/", cause, "dashboard").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal() {
    a_store_that("refusal", |store| store.set_mood(403, "AccessDenied")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_have_expired() {
    a_store_that("credentials", |store| store.set_mood(400, "ExpiredToken")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_does_not_answer() {
    a_store_that("silence", |store| store.set_mood(500, "InternalError")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_throttles() {
    a_store_that("throttled", |store| store.set_mood(503, "SlowDown")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away() {
    a_store_that("server away", MoodyS3::go_away).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_not_a_record() {
    let place = Place::new();
    place.overwrite("a", "somebody's photo");
    let scene = Scene::in_place(&place);
    let sidecar = scene.candidate("beta", &[]).await;
    scene.sidecar_says(&sidecar, "foreign object").await;
    scene.others_say("foreign object").await;
}

/// On a file system of its own, which only a process that may mount one can have.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full() {
    let place = Place::new();
    let directory = place.path("disk");
    std::fs::create_dir(&directory).unwrap();
    let mount = format!("mount -t tmpfs -o size=256k none {} && exec \"$@\"", directory.display());
    let inside = |program: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", &mount, "sh"]).args(program);
        command
    };
    if !inside(&["true"]).output().is_ok_and(|ended| ended.status.success()) {
        return eprintln!("nothing was tested: this machine does not let the test mount a file system");
    }
    let lock = format!("file://{}/locks/a", directory.display());
    let program = env!("CARGO_BIN_EXE_leaderelect");
    let more = ["--drain", "0s", "--listen", "127.0.0.1:0"];
    let serve = [program, "serve", "--lock", &lock, "--identity", "alpha"];
    let mut command = inside(&[&serve[..], &TIMINGS, &more].concat());
    let sidecar = Sidecar::spawn(&mut command).await;
    sidecar.sees("alpha").await;
    let disk = format!("/proc/{}/root{}", sidecar.pid(), directory.display());
    let filler = format!("{disk}/filler");
    let fill = || std::fs::write(&filler, vec![0; 1 << 20]).unwrap_err();
    fill();
    let mut standstills = 0;
    eventually("the page shows the full disk", async || {
        let page = plain(&sidecar.ask("/").await.1);
        let count = page.matches("this process stood still").count();
        // The page tells nothing of the disk for a term whose end the sidecar has noticed late.
        if count > standstills {
            standstills = count;
            std::fs::remove_file(&filler).unwrap();
            sidecar.sees("alpha").await;
            fill();
        }
        has_all(&page, "disk full", "page").then_some(())
    })
    .await;
    let scene = Scene::new(format!("file://{disk}/locks/a"), format!("file://{disk}/locks/"));
    scene.expires().await;
    shows(&sidecar, "/", "disk full", "page").await;
    shows(&sidecar, "/leader", "disk full", "leader").await;
    scene.others_say("disk full").await;
    std::fs::remove_file(&filler).unwrap();
    sidecar.sees("alpha").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_was_handed_over() {
    let place = Place::new();
    let scene = Scene::in_place(&place);
    let alpha = scene.candidate("alpha", &["--lease-duration", "5m"]).await;
    alpha.sees("alpha").await;
    let beta = scene.candidate("beta", &["--lease-duration", "5m"]).await;
    beta.sees("alpha").await;
    let mut watch = scene.watch();
    watch.wait_for_line("alpha holds the lease");
    // A leader that renews hands over at once, before the watch has seen the request.
    alpha.signal(Signal::STOP);
    let ended = end(&["transfer", "--yes", "--to", "beta", &scene.lock[0]]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    watch.wait_for_line_of(&words("transferred", "watch"));
    alpha.signal(Signal::CONT);
    scene.sidecar_says(&alpha, "transferred").await;
    shows(&scene.dashboard().await, "/", "transferred", "dashboard").await;
    scene.commands_say("transferred");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_was_handed_over_to_nobody() {
    let place = Place::new();
    let scene = Scene::in_place(&place);
    let alpha = scene.candidate("alpha", &["--lease-duration", "5m"]).await;
    alpha.sees("alpha").await;
    let beta = scene.candidate("beta", &["--lease-duration", "5m"]).await;
    beta.sees("alpha").await;
    let ended = end(&["transfer", "--yes", "--to", "ghost", &scene.lock[0]]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // Both wait for a whole lease.
    scene.sidecar_says(&alpha, "for a candidate that is away").await;
    scene.sidecar_says(&beta, "for a candidate that is away").await;
    scene.others_say("for a candidate that is away").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_that_may_not_write() {
    let free = record("", "2s", 7, "1");
    for (cause, record) in [
        ("dead, no permission", renewed("node-1", "2s", chrono::TimeDelta::zero())),
        ("free, no permission", free.replace("2026-02-02T10:15:30.000000Z", &chrono::Utc::now().to_rfc3339())),
    ] {
        let store = MoodyS3::start(record, false);
        store.deny_writes();
        let scene = Scene::new(store.url("locks/a"), store.url("locks/"));
        scene.sidecar_says(&scene.candidate("beta", &[]).await, cause).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_was_taken_back() {
    let place = Place::new();
    let scene = Scene::in_place(&place);
    let worse = scene.candidate("beta", &[&TIMINGS[..4], &["--rank", "9"]].concat()).await;
    worse.sees("beta").await;
    let _better = scene.candidate("alpha", &[&TIMINGS[..4], &["--failback"]].concat()).await;
    scene.sidecar_says(&worse, "taken back").await;
    scene.others_say("taken back").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_frozen() {
    let place = Place::new();
    let scene = Scene::in_place(&place);
    let alpha = scene.candidate("alpha", &TIMINGS[..4]).await;
    alpha.sees("alpha").await;
    let beta = scene.candidate("beta", &TIMINGS[..4]).await;
    beta.sees("alpha").await;
    alpha.signal(Signal::STOP);
    let began =
        beta.sees("beta").await["acquireTime"].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap();
    let has_led = async || (chrono::Utc::now() - began > chrono::TimeDelta::seconds(2)).then_some(());
    eventually("the next leader has led for a while", has_led).await;
    alpha.signal(Signal::CONT);
    scene.sidecar_says(&alpha, "frozen").await;
    scene.others_say("frozen").await;
    // No time is told in which two led: the one term ends before the other one begins.
    let ended = term(&alpha.ask("/").await.1, "alpha").1;
    let began = term(&beta.ask("/").await.1, "beta").0;
    assert!(ended <= began, "alpha led until {ended}, and beta from {began} on");
}

/// The beginning of the last term of `name` on a page, and its end, as far as its length in whole seconds or minutes tells.
fn term(page: &str, name: &str) -> (chrono::DateTime<chrono::Utc>, chrono::DateTime<chrono::Utc>) {
    let terms = page.split("<h2 id=\"terms-title\">").nth(1).unwrap();
    let row = terms.split("<tr>").find(|row| row.contains(&format!("<bdi>{name}</bdi>"))).unwrap();
    let began = row.split("datetime=\"").nth(1).unwrap().split('"').next().unwrap();
    let (length, unit) = row.split("</td><td>").nth(2).unwrap().split_once(' ').unwrap();
    let length: u64 = length.parse().unwrap();
    let began = began.parse().unwrap();
    (began, began + Duration::from_secs(if unit == "min" { 60 * length } else { length }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_died_alone() {
    let place = Place::new();
    let scene = Scene::in_place(&place);
    let leader = scene.candidate("alpha", &TIMINGS[..4]).await;
    leader.sees("alpha").await;
    leader.signal(Signal::STOP);
    scene.expires().await;
    scene.others_say("expired").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_was_released() {
    let place = Place::new();
    let scene = Scene::in_place(&place);
    let mut leader = scene.candidate("alpha", &[]).await;
    leader.sees("alpha").await;
    leader.signal(Signal::TERM);
    assert_eq!(leader.ended().await.code(), Some(0));
    scene.others_say("released").await;
}

const HALF_AN_HOUR: Duration = Duration::from_secs(30 * 60 + 5);

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_dead_before_anybody_looked() {
    let place = Place::new();
    place.overwrite("a", &renewed("node-1", "60s", chrono::TimeDelta::from_std(HALF_AN_HOUR).unwrap()));
    place.set_written("locks/a", HALF_AN_HOUR);
    let scene = Scene::in_place(&place);
    scene.others_say("dead for half an hour").await;
    let sidecar = scene.candidate("beta", &[]).await;
    scene.sidecar_says(&sidecar, "dead for half an hour").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_dead_before_the_first_read_without_ages() {
    let store = MoodyS3::start(renewed("node-1", "60s", chrono::TimeDelta::from_std(HALF_AN_HOUR).unwrap()), false);
    let scene = Scene::new(store.url("locks/a"), store.url("locks/"));
    scene.others_say("dead, without ages").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slots() {
    let place = Place::new();
    let url = place.file("workers");
    let options = [&LONG[..], &["--identity", "node-1", "--slots", "1"]].concat();
    let mut holder = Running::start(&run(&url, &options, &["sh", "-c", "echo up; exec sleep 1000"]));
    holder.wait_for("up");
    let scene = Scene::new(url.clone(), format!("{url}/"));
    shows(&scene.dashboard().await, "/", "slots", "dashboard").await;
    scene.commands_say("slots");
    let mut watch = scene.watch();
    words("slots", "watch").iter().for_each(|words| drop(watch.wait_for_note(words)));
    let scripted = end(&["status", "--exit-code", "-o", "json", &url]);
    assert_eq!(scripted.code, Some(0), "{scripted:?}");
    let report: serde_json::Value = serde_json::from_str(&scripted.stdout).unwrap();
    assert_eq!(report["slots"][0]["holder"], "node-1", "{report}");
    let nobody = end(&["status", "--exit-code", &place.file("absent")]);
    assert_eq!(nobody.code, Some(1), "{nobody:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_nobody_holds() {
    let place = Place::new();
    let scene = Scene::in_place(&place);
    place.overwrite("a", &record("", "1s", 7, "1"));
    scene.others_say("free").await;
    place.overwrite("a", &record("", "1s", 7, "2").replacen('{', r#"{"preferredHolder":"node-2","#, 1));
    scene.others_say("next leader").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_failed() {
    let place = Place::new();
    let scene = Scene::in_place(&place);
    let options = [&LONG[..], &["--identity", "node-1", "--job-id", "monday", "--keep-history", "9"]].concat();
    let failed = end(&run(&scene.lock[0], &options, &["sh", "-c", "exit 3"]));
    assert_eq!(failed.code, Some(3), "{failed:?}");
    scene.others_say("job failed").await;
    let done = end(&run(&scene.lock[0], &options, &["true"]));
    assert_eq!(done.code, Some(0), "{done:?}");
    let listed = end(&["list", &scene.prefixes[0]]);
    assert!(listed.stdout.contains(" free "), "what was done after all is in no trouble: {listed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_does_not_exist() {
    let place = Place::new();
    let scene = Scene::in_place(&place);
    scene.commands_say("no directory");
    let watch = end(&["watch", &scene.lock[0]]);
    assert!(watch.code == Some(64) && has_all(&watch.stderr, "no directory", "watch"), "{watch:?}");
    assert_eq!(end(&["status", &scene.lock[0]]).code, Some(64));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_of_a_session() {
    let place = Place::new();
    let scene = Scene::in_place(&place);
    let time = chrono::Utc::now().to_rfc3339();
    let lock = serde_json::json!({
        "holderIdentity": "node-1", "session": "s1", "acquireTime": time, "leaderTransitions": 7, "writeId": "w",
    });
    place.overwrite("a", &lock.to_string());
    place.put("sessions/s1", &renewed("node-1", "1h", chrono::TimeDelta::zero()));
    scene.others_say("session").await;
    place.put("sessions/s1", &record("", "1s", 7, "2"));
    scene.others_say("session ended").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_of_which_a_part_is_away() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        std::fs::create_dir(place.path(name)).unwrap();
    }
    let scene = Scene {
        lock: ["a", "b", "c"]
            .iter()
            .flat_map(|name| ["--lock".to_owned(), place.file(&format!("{name}/worker"))])
            .collect(),
        prefixes: ["a/", "b/", "c/"].map(|name| place.file(name)).to_vec(),
    };
    let mut leader = leaderelect(["run", "--identity", "node-1"]);
    leader.args(&scene.lock).args(LONG).args(["--", "sh", "-c", "echo up; exec sleep 1000"]);
    let mut leader = Running::of(leader);
    leader.wait_for("up");
    place.cut_off("c");
    let mut follower = serve(&scene.lock[1], "beta");
    let follower = Sidecar::spawn(follower.args(&scene.lock[2..]).args(["--drain", "0s"])).await;
    scene.sidecar_says(&follower, "a part is away").await;
    // A list is that of one part.
    let whole = Scene { lock: scene.lock.clone(), prefixes: Vec::new() };
    shows(&scene.dashboard().await, "/", "a part is away", "dashboard").await;
    let mut watch = scene.watch();
    watch.wait_for_line_of(&words("a part is away", "watch"));
    watch.wait_for_note("bring this part back");
    whole.commands_say("a part is away");
    // Parts come back and go away while the watch goes on.
    place.put_back("c");
    watch.wait_for_note("c/worker: this part is back");
    place.cut_off("a");
    watch.wait_for_note("bring this part back");
}
