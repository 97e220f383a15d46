//! The commands on a real server.

use std::path::Path;
use std::process::Command;

use leaderelection_integration_tests::servers::seaweedfs::SeaweedFs;
use serde_json::Value;

use crate::support::{Ended, LONG, Running, end_of, leaderelect, run};

#[test]
fn run_status_list_and_probe_on_s3() {
    let server = SeaweedFs::start(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(server.create_bucket("bucket"));
    let url = |path: &str| format!("s3://bucket{path}?endpoint={}", server.url());
    let lock = url("/locks/a");
    let with_keys = |args: &[&str]| -> Command {
        let mut command = leaderelect(args);
        command.envs(server.environment());
        command
    };
    let end = |args: &[&str]| -> Ended { end_of(with_keys(args)) };

    let options = [&LONG[..], &["--identity", "node-1"]].concat();
    let work = ["sh", "-c", "echo $LEADERELECTION_LOCK; exec sleep 1000"];
    let mut leader = Running::of(with_keys(&run(&lock, &options, &work)));
    assert!(leader.wait_for("").starts_with("s3://bucket/locks/a?endpoint=http"));

    let status: Value = serde_json::from_str(&end(&["status", "-o", "json", &lock]).stdout).unwrap();
    assert_eq!((&status["holder"], &status["fencingToken"]), (&"node-1".into(), &1.into()), "{status}");
    let listed = end(&["list", &url("/locks/")]);
    assert!(
        listed
            .stdout
            .lines()
            .any(|line| line.starts_with("locks/a   held    node-1") || line.starts_with("locks/a   held   node-1")),
        "{listed:?}"
    );
    let held = end(&run(&lock, &[&LONG[..], &["--no-wait"]].concat(), &["true"]));
    assert_eq!(held.code, Some(75), "{held:?}");

    leader.signal(rustix::process::Signal::TERM);
    assert_eq!(leader.end().code, Some(128 + 15));
    let next = end(&run(&lock, &LONG, &["sh", "-c", "echo $LEADERELECTION_FENCING_TOKEN"]));
    assert_eq!((next.code, next.stdout.as_str()), (Some(0), "2\n"), "{next:?}");

    // Few writers: with many, this server's losers stall for seconds.
    let patient = ["--writers", "2", "--request-timeout", "4900ms"];
    let probed = end(&[&["probe", "-o", "json"], &patient[..], &[&lock]].concat());
    let report: Value = serde_json::from_str(&probed.stdout).unwrap();
    assert_eq!((probed.code, &report["verdict"]), (Some(0), &"fit".into()), "{report}");
    let ahead = report["clock"]["aheadOfStoreSeconds"].as_f64().unwrap();
    assert!(ahead.abs() < 2.0, "this machine's clock is not its own: {report}");
    let absent = end(&["status", &url("/locks/none")]);
    assert_eq!(absent.code, Some(0), "{absent:?}");
    let bucket = end(&["list", &format!("s3://bucket?endpoint={}", server.url())]);
    assert!(bucket.stdout.contains("locks/a"), "{bucket:?}");
    let no_bucket = end(&["status", &format!("s3://none/locks/a?endpoint={}", server.url())]);
    assert_eq!(no_bucket.code, Some(69), "{no_bucket:?}");
}
