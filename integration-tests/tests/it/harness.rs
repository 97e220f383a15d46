//! Checks that the harness leaves no process running.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use leaderelection_integration_tests::servers::process::ServerProcess;
use leaderelection_integration_tests::servers::seaweedfs::SeaweedFs;
use leaderelection_integration_tests::servers::unique_name;
use notify::{RecursiveMode, Watcher as _};

const TEST_PROCESS: &str = "LEADERELECTION_HARNESS_TEST_PROCESS";

/// Starts a server that does nothing.
fn start_server(directory: &Path) -> ServerProcess {
    let mut server = Command::new("sleep");
    server.arg("1000");
    ServerProcess::start(&server, directory.to_owned())
}

/// Checks the condition whenever something changes in the directory.
fn wait_until(what: &str, directory: &Path, holds: impl Fn() -> bool) {
    let (sender, changes) = channel();
    let mut watcher = notify::recommended_watcher(sender).expect("a watcher");
    watcher.watch(directory, RecursiveMode::NonRecursive).expect("a directory to watch");
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        let change = changes.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        change.unwrap_or_else(|_| panic!("in vain: {what}")).expect("a change");
    }
}

fn is_running(pid: &str) -> bool {
    let status = Command::new("kill").args(["-0", pid]).stderr(Stdio::null()).status();
    status.expect("`kill` can be run").success()
}

#[test]
fn a_server_does_not_outlive_its_test_process() {
    if let Ok(directory) = std::env::var(TEST_PROCESS) {
        let _server = start_server(Path::new(&directory));
        loop {
            std::thread::park();
        }
    }
    let above = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let directory = above.join(unique_name());
    std::fs::create_dir_all(&directory).expect("a directory");
    let mut test_process = Command::new(std::env::current_exe().expect("this test's program"))
        .args(["--exact", "harness::a_server_does_not_outlive_its_test_process"])
        .env(TEST_PROCESS, &directory)
        .stdout(Stdio::null())
        .spawn()
        .expect("another test process");
    wait_until("the server starts", &directory, || directory.join("pid").exists());
    let pid = std::fs::read_to_string(directory.join("pid")).expect("a process id").trim().to_owned();
    assert!(is_running(&pid));
    test_process.kill().expect("SIGKILL");
    test_process.wait().expect("ended");
    wait_until("the server ends and its directory is removed", above, || !is_running(&pid) && !directory.exists());
}

#[test]
fn a_server_that_does_not_start_is_quoted() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(unique_name());
    std::fs::create_dir_all(&directory).expect("a directory");
    let mut server = Command::new("sh");
    server.args(["-c", "echo the port is taken; exit 3"]);
    let mut process = ServerProcess::start(&server, directory.clone());
    let error = process.wait_until_answering(1, "/", 200, Duration::from_secs(30)).expect_err("it ended");
    assert!(error.contains("exit status: 3") && error.contains("the port is taken"), "{error}");
    drop(process);
    assert!(!directory.exists());
}

#[test]
fn seaweedfs_leaves_nothing_behind() {
    let server = SeaweedFs::start(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let ports: Vec<_> = (0..4).flat_map(|n| [server.port() + n, server.port() + n + 10_000]).collect();
    let left = || {
        let names = std::fs::read_dir("/tmp").expect("a directory").map(|entry| entry.expect("an entry").file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        let is_its = |name: &String| ports.iter().any(|port| name.ends_with(&format!("-{port}.sock")));
        names.filter(is_its).collect::<Vec<_>>()
    };
    assert_eq!(left().len(), 4, "{:?}", left());
    drop(server);
    assert_eq!(left(), Vec::<String>::new());
}
