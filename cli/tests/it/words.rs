//! The words that people see at night. Whoever reads one of the views knows who leads, and what to do.

mod moody_s3;
mod table;

use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use self::moody_s3::MoodyS3;
use self::table::words;
use crate::dashboard::dashboard;
use crate::serve::process::eventually;
use crate::serve::sidecar::{Sidecar, serve};
use crate::support::{LONG, Place, Running, TIMINGS, end, end_of, leaderelect, record, run};

fn has_all(text: &str, cause: &str, view: &str) -> bool {
    words(cause, view).iter().all(|words| text.contains(words))
}

/// The text of a page, without its marks.
fn plain(page: &str) -> String {
    let text: String = page.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
    text.replace("&#34;", "\"").replace("&#39;", "'")
}

/// Waits until the page at `path` says what the table says.
async fn shows(sidecar: &Sidecar, path: &str, cause: &str, view: &str) {
    let mut last = String::new();
    let seen = tokio::time::timeout(crate::support::PATIENCE, async {
        loop {
            last = plain(&sidecar.ask(path).await.1);
            if has_all(&last, cause, view) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    assert!(seen.await.is_ok(), "{cause}, {view}: {last}");
}

/// The place of a lock, as the views are given it.
struct Scene {
    lock: String,
    prefix: String,
}

impl Scene {
    fn in_place(place: &Place) -> Self {
        Self { lock: place.lock("a"), prefix: place.prefix() }
    }

    fn with_keys(mut command: Command) -> Command {
        command.env("AWS_ACCESS_KEY_ID", "id").env("AWS_SECRET_ACCESS_KEY", "key");
        command
    }

    async fn candidate(&self, identity: &str, more: &[&str]) -> Sidecar {
        let mut command = Self::with_keys(serve(&self.lock, identity));
        Sidecar::spawn(command.args(["--drain", "0s"]).args(more)).await
    }

    async fn dashboard(&self) -> Sidecar {
        Sidecar::spawn(&mut Self::with_keys(dashboard(&self.prefix, "100ms"))).await
    }

    fn watch(&self) -> Running {
        Running::of(Self::with_keys(leaderelect(["watch", "--interval", "50ms", &self.lock])))
    }

    async fn sidecar_says(&self, sidecar: &Sidecar, cause: &str) {
        shows(sidecar, "/", cause, "page").await;
        shows(sidecar, "/readyz", cause, "readyz").await;
    }

    /// Looks from outside.
    async fn others_say(&self, cause: &str) {
        shows(&self.dashboard().await, "/", cause, "dashboard").await;
        self.status_says(cause);
        let mut watch = self.watch();
        words(cause, "watch").iter().for_each(|words| watch.wait_for_line(words));
    }

    fn status_says(&self, cause: &str) {
        let ended = end_of(Self::with_keys(leaderelect(["status", &self.lock])));
        let text = ended.stdout.clone() + &ended.stderr;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(has_all(&text, cause, "status"), "{cause}: {ended:?}");
    }
}

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
    assert!(leader.ask("/").await.1.contains("That is this candidate."));
    drop(leader);
    eventually("the other one leads", async || other.leader().await["leading"].as_bool().filter(|leads| *leads)).await;
    assert!(other.ask("/").await.1.contains("That is this candidate."));
}

/// The store is well, until it is in this mood.
async fn a_store_that(cause: &str, status: u16, code: &'static str) {
    // Its clock is ahead, so that it is in no doubt on a busy machine.
    let store = MoodyS3::start(renewed("node-1", "2s", -chrono::TimeDelta::hours(1)), true).await;
    let scene = Scene { lock: store.url("locks/a"), prefix: store.url("locks/") };
    let (sidecar, dashboard) = tokio::join!(scene.candidate("beta", &["--lease", "3s"]), scene.dashboard());
    sidecar.sees("node-1").await;
    eventually("the dashboard has seen it", async || dashboard.ask("/").await.1.contains("node-1").then_some(())).await;
    let mut watch = scene.watch();
    watch.wait_for_line("node-1 leads");
    store.set_mood(status, code);
    scene.status_says(cause);
    words(cause, "watch").iter().for_each(|words| watch.wait_for_line(words));
    scene.sidecar_says(&sidecar, cause).await;
    shows(&dashboard, "/", cause, "dashboard").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal() {
    a_store_that("refusal", 403, "AccessDenied").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_have_expired() {
    a_store_that("credentials", 400, "ExpiredToken").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_does_not_answer() {
    a_store_that("silence", 500, "InternalError").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_throttles() {
    a_store_that("throttled", 503, "SlowDown").await;
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
    let scene = Scene { lock: format!("file://{disk}/locks/a"), prefix: String::new() };
    eventually("the lease has run out", async || {
        let ended = end(&["status", &scene.lock]);
        ended.stdout.contains("nobody").then_some(())
    })
    .await;
    scene.status_says("disk full");
    std::fs::remove_file(&filler).unwrap();
    sidecar.sees("alpha").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_was_handed_over() {
    let place = Place::new();
    let scene = Scene::in_place(&place);
    let alpha = scene.candidate("alpha", &["--lease", "5m"]).await;
    alpha.sees("alpha").await;
    let beta = scene.candidate("beta", &["--lease", "5m"]).await;
    beta.sees("alpha").await;
    let mut watch = scene.watch();
    watch.wait_for_line("alpha leads");
    // A leader that renews hands over at once, before the watch has seen the request.
    alpha.signal(Signal::STOP);
    let ended = end(&["transfer", "--yes", "--to", "beta", &scene.lock]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    words("transferred", "watch").iter().for_each(|words| watch.wait_for_line(words));
    alpha.signal(Signal::CONT);
    scene.sidecar_says(&alpha, "transferred").await;
    shows(&scene.dashboard().await, "/", "transferred", "dashboard").await;
    scene.status_says("transferred");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_was_taken_back() {
    let place = Place::new();
    let scene = Scene::in_place(&place);
    let worse = scene.candidate("beta", &[&TIMINGS[..4], &["--rank", "9"]].concat()).await;
    worse.sees("beta").await;
    let _better = scene.candidate("alpha", &[&TIMINGS[..4], &["--take-back"]].concat()).await;
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

/// The beginning of the last term of `name` on a page, and its end, as far as its length in whole seconds tells.
fn term(page: &str, name: &str) -> (chrono::DateTime<chrono::Utc>, chrono::DateTime<chrono::Utc>) {
    let terms = page.split("<h2 id=\"terms-title\">").nth(1).unwrap();
    let row = terms.split("<tr>").find(|row| row.contains(&format!("<bdi>{name}</bdi>"))).unwrap();
    let began = row.split("datetime=\"").nth(1).unwrap().split('"').next().unwrap();
    let length = row.split("</td><td>").nth(2).unwrap().trim_end_matches(" s").parse().unwrap();
    let began = began.parse().unwrap();
    (began, began + Duration::from_secs(length))
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
async fn a_leader_that_was_dead_before_anybody_looked_at_a_store_that_tells_no_ages() {
    let store =
        MoodyS3::start(renewed("node-1", "60s", chrono::TimeDelta::from_std(HALF_AN_HOUR).unwrap()), false).await;
    let scene = Scene { lock: store.url("locks/a"), prefix: store.url("locks/") };
    scene.others_say("dead, without ages").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slots() {
    let place = Place::new();
    let url = place.file("workers");
    let options = [&LONG[..], &["--identity", "node-1", "--slots", "1"]].concat();
    let mut holder = Running::start(&run(&url, &options, &["sh", "-c", "echo up; exec sleep 1000"]));
    holder.wait_for("up");
    let scene = Scene { lock: url.clone(), prefix: format!("{url}/") };
    shows(&scene.dashboard().await, "/", "slots", "dashboard").await;
    scene.status_says("slots");
    let mut watch = scene.watch();
    words("slots", "watch").iter().for_each(|words| drop(watch.wait_for_note(words)));
    let scripted = end(&["status", "--exit-code", "-o", "json", &url]);
    assert_eq!(scripted.code, Some(0), "{scripted:?}");
    let report: serde_json::Value = serde_json::from_str(&scripted.stdout).unwrap();
    assert_eq!(report["slots"][0]["holder"], "node-1", "{report}");
    let nobody = end(&["status", "--exit-code", &place.lock("absent")]);
    assert_eq!(nobody.code, Some(1), "{nobody:?}");
}
