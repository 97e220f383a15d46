//! `run` on a store that is no good, with a limit to its patience.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::http::{Method, StatusCode};
use rustix::process::Signal;

use crate::fake_s3::{FakeS3, with_keys};
use crate::support::{Ended, LONG, Running, leaderelect, run};

/// An S3 without any object, where nobody may write.
fn read_only_s3() -> FakeS3 {
    FakeS3::start(|method, _| match *method {
        Method::PUT => (StatusCode::FORBIDDEN, "<Error><Code>AccessDenied</Code></Error>"),
        _ => (StatusCode::NOT_FOUND, "<Error><Code>NoSuchKey</Code></Error>"),
    })
}

/// Takes connections, and says nothing.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("s3://bucket/lock?endpoint=http://{}", listener.local_addr().unwrap());
    (listener, url)
}

/// Waits no longer than a test may take.
fn end(lock: &str, options: &[&str]) -> Ended {
    Running::of(with_keys(leaderelect(run(lock, options, &["echo", "led"])))).end()
}

fn assert_unavailable(ended: &Ended, why: &str) {
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(69), ""), "{ended:?}");
    let error = ended.stderr.lines().last().unwrap_or_default();
    assert!(error.contains("error: ") && error.contains("s3://bucket/lock") && error.contains(why), "{ended:?}");
}

#[test]
fn a_lock_that_cannot_be_written_is_no_lock_that_somebody_holds() {
    let server = read_only_s3();
    let lock = server.url("lock");
    assert_unavailable(&end(&lock, &[&LONG[..], &["--no-wait"]].concat()), "allow s3:PutObject");
    assert_unavailable(&end(&lock, &[&LONG[..], &["--wait-timeout", "9s"]].concat()), "allow s3:PutObject");
}

#[test]
fn a_store_that_takes_no_write_now_is_no_lock_that_somebody_holds() {
    let server = FakeS3::start(|method, _| match *method {
        Method::PUT => (StatusCode::SERVICE_UNAVAILABLE, "<Error><Code>SlowDown</Code></Error>"),
        _ => (StatusCode::NOT_FOUND, "<Error><Code>NoSuchKey</Code></Error>"),
    });
    assert_unavailable(&end(&server.url("lock"), &[&LONG[..], &["--wait-timeout", "7s"]].concat()), "SlowDown");
}

#[test]
fn a_store_that_is_silent_is_not_waited_for_longer_than_allowed() {
    let (_server, lock) = silent();
    let patient = ["--lease-duration", "10m", "--renew-deadline", "9m"];
    let ended = end(&lock, &[&patient[..], &["--wait-timeout", "2s"]].concat());
    assert_unavailable(&ended, "no answer within 2s (--wait-timeout); check the network");
    let ended = end(&lock, &[&patient[..], &["--no-wait", "--request-timeout", "2s"]].concat());
    assert_unavailable(&ended, "no answer within 2s (--request-timeout); check the network");
}

/// The number of reads that fail, between any two of which there is a pause of a retry period: they take longer than a lease.
const FAILURES: u32 = 20;

/// A store that is down at the start is waited for as long as the user says, and else for one lease.
#[test]
fn a_store_that_is_down_at_the_start_is_waited_for_as_long_as_allowed() {
    static READS: AtomicU32 = AtomicU32::new(0);
    let server = FakeS3::start(|_, _| match READS.fetch_add(1, Ordering::SeqCst) {
        0..FAILURES => (StatusCode::SERVICE_UNAVAILABLE, "<Error><Code>SlowDown</Code></Error>"),
        _ => (StatusCode::NOT_FOUND, "<Error><Code>NoSuchKey</Code></Error>"),
    });
    let short = ["--lease-duration", "3s", "--renew-deadline", "2s", "--retry-period", "200ms"];
    assert_unavailable(&end(&server.url("lock"), &short), "SlowDown");
    READS.store(0, Ordering::SeqCst);
    let options = [&short[..], &["--wait-timeout", "1h"]].concat();
    let mut waiting = Running::of(with_keys(leaderelect(run(&server.url("lock"), &options, &["true"]))));
    waiting.wait_for_note("competing for");
}

#[test]
fn a_store_that_is_out_of_reach_is_asked_once_by_who_does_not_wait() {
    let patient = ["--lease-duration", "10m", "--renew-deadline", "9m", "--no-wait"];
    assert_unavailable(&end("s3://bucket/lock?endpoint=http://127.0.0.1:1", &patient), "cannot connect");
}

/// A store, or the source of its credentials: what the first poll waits for.
#[test]
fn a_first_read_that_waits_says_what_it_waits_for_and_why() {
    let (server, lock) = silent();
    let source = format!("http://{}/keys", server.local_addr().unwrap());
    let nobody = "http://127.0.0.1:1";
    let out_of_reach = format!("s3://bucket/lock?endpoint={nobody}");
    let keys = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
    // Who refuses has the time to do so on a busy machine: the SDK asks a source of credentials three times.
    let (short, long) = ("1s", "15s");
    let cases: [(&str, Option<&str>, &str, &str); 4] = [
        (&lock, None, short, "no answer within 1s (--request-timeout); check the network and the endpoint"),
        (&out_of_reach, None, long, "cannot connect"),
        (
            &lock,
            Some(&source),
            short,
            "the credentials were not loaded within 1s (--request-timeout); check the source",
        ),
        (&lock, Some(nobody), long, "cannot load credentials; the request was not sent; check where they come from"),
    ];
    for (lock, source, timeout, why) in cases {
        let options = [&LONG[..], &["--request-timeout", timeout]].concat();
        let mut command = leaderelect(run(lock, &options, &["true"]));
        match source {
            None => command = with_keys(command),
            Some(source) => {
                command.env("AWS_REGION", "eu-central-1").env("AWS_EC2_METADATA_DISABLED", "true").env(keys, source);
            }
        }
        let mut candidate = Running::of(command);
        let line = candidate.wait_for_note("a request to the lock failed; trying again");
        assert!(line.contains(why) && line.contains("s3://bucket/lock"), "{line}");
        candidate.signal(Signal::TERM);
        let ended = candidate.end();
        assert_eq!(ended.code, Some(128 + 15), "{ended:?}");
    }
}
