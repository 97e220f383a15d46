//! The pages of `serve` and of `dashboard`, in a real Chromium.

use std::path::{Path, PathBuf};
use std::process::Command;

use leaderelection_integration_tests::servers::npm::{self, Packages};
use leaderelection_integration_tests::servers::process::exclusively;
use rustix::process::Signal;

use crate::dashboard::dashboard;
use crate::lease_api::{LEASES, lease_api};
use crate::serve::process::eventually;
use crate::serve::sidecar::{Sidecar, lock_in, serve};
use crate::support::{PROGRAM, Place, record};

/// Names its place below `target`, so that new packages get a new one.
const NAME: &str = "chromium-153";

/// A Chromium, what drives it, and what knows the rules of accessibility.
const PACKAGES: Packages =
    Packages { manifest: include_str!("browser/package.json"), lock: include_str!("browser/package-lock.json") };

/// Another Chromium than the one of the packages, which is for Linux on x86-64.
const CHROMIUM: &str = "LEADERELECTION_TEST_CHROMIUM";

/// The packages, with their Chromium unpacked.
fn packages() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let packages = npm::install(directory, NAME, PACKAGES);
    if std::env::var_os(CHROMIUM).is_some() {
        return packages;
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        panic!("the npm registry has no Chromium for this machine; install one, and give its path in {CHROMIUM}");
    }
    exclusively(directory, NAME, || {
        if !packages.join("chromium").exists() {
            run("unpack.mjs", &packages, &mut Command::new("node"));
        }
    });
    packages
}

/// Runs a script of the folder `browser`, whose first argument is the directory of the packages.
fn run(script: &str, packages: &Path, node: &mut Command) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/browser").join(script);
    let output =
        node.arg(path).arg(packages).output().unwrap_or_else(|error| {
            panic!("the test of the page needs Node.js 20 or newer; install it (`node`: {error})")
        });
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script} failed ({}):\n{out}{err}", output.status);
}

/// Runs a script with a browser, once this one is free. Two browsers wait for most of their time, and four would take both
/// processors.
async fn visit(browser: &'static str, script: &'static str, mut node: Command) {
    let directory = env!("CARGO_TARGET_TMPDIR");
    let visit = move || {
        let packages = packages();
        exclusively(Path::new(directory), browser, || run(script, &packages, node.env("SCREENSHOTS", directory)));
    };
    tokio::task::spawn_blocking(visit).await.unwrap();
}

/// Asserts that a page shows the next step, as on a phone, light and dark. Takes pictures if LEADERELECTION_TEST_PICTURES names
/// a directory for them.
pub(crate) async fn picture(url: String, name: String, step: Option<String>) {
    let directory = std::env::var_os("LEADERELECTION_TEST_PICTURES");
    if directory.is_none() && step.is_none() {
        return;
    }
    let mut node = Command::new("node");
    node.env("URL", url).env("NAME", name).env("STEP", step.unwrap_or_default());
    node.env("PICTURES", directory.unwrap_or_default());
    visit("browser-one", "picture.mjs", node).await;
}

/// Characters that turn the text behind them around.
const HIDDEN: &str = "\u{202e}\u{2066}";

/// As long as a name may be, and full of what must not be taken for more than text.
fn hostile(hidden: &str) -> String {
    let beginning = format!("<img src=x onerror=alert(1)>{hidden}</bdi>\"'&amp;");
    format!("{beginning}{}", "W".repeat(256 - beginning.len()))
}

#[tokio::test]
async fn the_page_follows_the_leader() {
    let directory = tempfile::tempdir().unwrap();
    let lock = lock_in(directory.path());
    let alpha = Sidecar::start(&lock, "<b>alpha</b>").await;
    alpha.sees("<b>alpha</b>").await;
    let beta = Sidecar::spawn(
        serve(&lock, "beta").args(["--drain", "0s"]).env("LEADERELECTION_HTTP_TOKEN", "the-password-of-the-page"),
    )
    .await;
    let mut node = Command::new("node");
    node.env("ALPHA_PID", alpha.pid().to_string()).env("BETA_PID", beta.pid().to_string());
    node.env("ALPHA_URL", alpha.url()).env("BETA_URL", beta.url()).env("BETA_PASSWORD", "the-password-of-the-page");
    visit("browser-one", "page.mjs", node).await;
}

#[tokio::test]
async fn the_page_agrees_with_itself_in_every_state() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store");
    std::fs::create_dir(&store).unwrap();
    // A candidate of ours has no characters that nobody sees.
    let (lock, name) = (lock_in(&store), hostile(""));
    let alpha = Sidecar::start(&lock, &name).await;
    alpha.sees(&name).await;
    let beta = Sidecar::start(&lock, "beta").await;
    beta.sees(&name).await;
    let mut node = Command::new("node");
    node.env("ALPHA_PID", alpha.pid().to_string()).env("BETA_PID", beta.pid().to_string());
    node.env("ALPHA_URL", alpha.url()).env("BETA_URL", beta.url()).env("NAME", name).env("STORE", store);
    visit("browser-two", "states.mjs", node).await;
}

#[tokio::test]
async fn the_dashboard_agrees_with_itself_in_every_state() {
    let place = Place::new();
    // A store of its own, which can go away as a whole.
    let put = |name: &str, record: &str| place.put(&format!("store/locks/{name}"), record);
    let quoted = serde_json::to_string(&hostile(HIDDEN)).unwrap();
    put("a-hostile-one", &record(quoted.trim_matches('"'), "1h", 7, "1"));
    put("dead", &record("gone", "2s", 7, "1"));
    for number in 0..998 {
        let holder = if number < 8 { "" } else { "node-1" };
        put(&format!("team/service-{number:03}"), &record(holder, "1h", 7, "1"));
    }
    let board = Sidecar::spawn(&mut dashboard(&place.file("store/locks/"), "2s")).await;
    let mut node = Command::new("node");
    node.env("PID", board.pid().to_string()).env("URL", board.url()).env("STORE", place.path("store"));
    node.env("PROGRAM", PROGRAM).env("DEAD", place.file("store/locks/dead")).env("NAME", hostile(HIDDEN));
    visit("browser-one", "dashboard.mjs", node).await;
}

#[tokio::test]
async fn a_page_of_another_site_creates_no_lease() {
    let place = Place::new();
    let leases = Sidecar::spawn(&mut lease_api(&place.file("leases"), "127.0.0.1:0")).await;
    let mut node = Command::new("node");
    node.env("LEASES_URL", format!("{}{LEASES}", leases.url()));
    visit("browser-two", "stranger.mjs", node).await;
    let (_, metrics) = leases.ask("/metrics").await;
    assert!(!metrics.contains(r#"verb="create""#), "{metrics}");
}

/// The pictures of docs/locks.md are copies of what this test leaves in `target/tmp`. After a change of a page, copy those
/// whose names begin with `looking-` to `docs/looking`.
#[tokio::test]
async fn the_pictures_can_be_taken() {
    let place = Place::new();
    let start = async |lock: &str, identity| Sidecar::start(&place.lock(lock), identity).await;
    let mut first = start("scheduler", "node-1").await;
    first.sees("node-1").await;
    let leader = start("scheduler", "node-2").await;
    leader.sees("node-1").await;
    let others = [start("billing/import", "node-1").await, start("reports/daily", "node-3").await];
    place.overwrite("backup", &record("", "1s", 12, "1"));
    place.overwrite("mail/outbox", &record("node-4", "2s", 31, "1"));
    let board = Sidecar::spawn(&mut dashboard(&place.prefix(), "1s")).await;
    let page = "<bdi>node-1</bdi></strong> leads";
    eventually("the dashboard sees the first leader", async || board.ask("/").await.1.contains(page).then_some(()))
        .await;
    first.signal(Signal::TERM);
    assert_eq!(first.ended().await.code(), Some(0));
    leader.sees("node-2").await;
    let follower = start("scheduler", "node-1").await;
    follower.sees("node-2").await;
    let mut node = Command::new("node");
    node.env("BOARD_URL", board.url()).env("LEADER_URL", leader.url()).env("FOLLOWER_URL", follower.url());
    visit("browser-two", "shots.mjs", node).await;
    drop(others);
}
