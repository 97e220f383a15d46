//! `run` on a store that is no good, with a limit to its patience.

use std::net::TcpListener;

use axum::http::{Method, StatusCode};

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
    let patient = ["--lease", "10m", "--renew", "9m"];
    let ended = end(&lock, &[&patient[..], &["--wait-timeout", "2s"]].concat());
    assert_unavailable(&ended, "no answer within 2s (--wait-timeout); check the network");
    let ended = end(&lock, &[&patient[..], &["--no-wait", "--request-timeout", "2s"]].concat());
    assert_unavailable(&ended, "no answer within 2s (--request-timeout); check the network");
}

#[test]
fn a_store_that_is_out_of_reach_is_asked_once_by_who_does_not_wait() {
    let patient = ["--lease", "10m", "--renew", "9m", "--no-wait"];
    assert_unavailable(&end("s3://bucket/lock?endpoint=http://127.0.0.1:1", &patient), "cannot connect");
}
