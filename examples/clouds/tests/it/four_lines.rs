//! README's program, for somebody who has set up less than is needed: it sets up no log.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use leaderelection_integration_tests::servers::seaweedfs::SeaweedFs;
use rustix::process::{Pid, Signal, kill_process};

const KEY: (&str, &str) = ("AWS_ACCESS_KEY_ID", "id");
const SECRET: (&str, &str) = ("AWS_SECRET_ACCESS_KEY", "hidden");
const REGION: (&str, &str) = ("AWS_REGION", "eu-central-1");
const NO_MACHINE: (&str, &str) = ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1");
const SET_BOTH: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";

/// A mistake, the bucket, the environment, and the words of the error.
type Row<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str);

/// Returns the first line that the program writes on standard error, and stops the program if it has not ended by itself.
fn first_words(bucket: &str, environment: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_four_lines"));
    command.arg(bucket).env_clear().env("HOME", "/nowhere").envs(environment.iter().copied());
    let mut program = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(program.stderr.take().unwrap());
    let (sender, lines) = channel();
    thread::spawn(move || {
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        // The rest is read, so that the program never waits for a reader.
        (sender.send(line), std::io::copy(&mut stderr, &mut std::io::sink()))
    });
    let line = lines.recv_timeout(Duration::from_secs(10));
    // A program whose settings name no bucket has ended, and has no process to signal once it was waited for.
    if program.try_wait().unwrap().is_none() {
        kill_process(Pid::from_child(&program), Signal::TERM).unwrap();
    }
    program.wait().unwrap();
    line.unwrap_or_else(|_| panic!("no word within 10 s: {environment:?}"))
}

/// Answers every request as S3 does for a bucket of another region. No server for tests knows regions, so this one stands in.
fn elsewhere() -> String {
    const ANSWER: &str = "HTTP/1.1 301 Moved Permanently\r\nx-amz-bucket-region: eu-west-1\r\ncontent-type: application/xml\r\n\
                          content-length: 55\r\nconnection: close\r\n\r\n\
                          <Error><Code>PermanentRedirect</Code><Message/></Error>";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = BufReader::new(connection.unwrap());
            let head = connection.by_ref().lines().take_while(|line| line.as_ref().is_ok_and(|line| !line.is_empty()));
            head.for_each(drop);
            // The program may be gone when it is answered.
            let _ = connection.get_mut().write_all(ANSWER.as_bytes());
        }
    });
    url
}

/// README's program is the one that these tests start, but for the bucket.
#[test]
fn the_program_of_readme_is_the_one_that_is_tested() {
    let page = include_str!("../../../../README.md");
    let (_, program) = page.split_once("```rust,no_run\n").unwrap();
    let (of_readme, _) = program.split_once("```").unwrap();
    let tested = include_str!("../../src/bin/four_lines.rs");
    let words = |text: &str| -> String { text.split_whitespace().collect::<String>().replace(",}", "}") };
    let (_, tested) = tested.split_once("use ").unwrap();
    let tested = words(&format!("use {tested}"));
    let tested = tested.replace(&words(r#"let bucket = std::env::args().nth(1).ok_or("name a bucket")?;"#), "");
    assert_eq!(tested.replace("&bucket,", r#""my-bucket","#), words(of_readme));
}

#[test]
fn a_wrong_setting_is_told_within_ten_seconds_without_a_log() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    let server = SeaweedFs::start(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let server_url = server.url();
    let [key, secret] = server.environment();
    let no_bucket = [key, secret, REGION, ("AWS_ENDPOINT_URL", &server_url)];
    let elsewhere = elsewhere();
    let rows: [Row<'_>; 14] = [
        ("nothing is set", "bucket", &[NO_MACHINE], "or set AWS_REGION"),
        ("the region is empty", "bucket", &[KEY, SECRET, ("AWS_REGION", "")], "no region; AWS_REGION is empty: set"),
        ("no such region", "bucket", &[KEY, SECRET, ("AWS_REGION", "eu.invalid")], "region (AWS_REGION"),
        (
            "the region of another bucket",
            "bucket",
            &[KEY, SECRET, REGION, ("AWS_ENDPOINT_URL", &elsewhere)],
            "the bucket's region is eu-west-1",
        ),
        ("no credentials", "bucket", &[REGION, NO_MACHINE], SET_BOTH),
        (
            "the key alone",
            "bucket",
            &[REGION, KEY, NO_MACHINE],
            "AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not",
        ),
        (
            "the secret alone",
            "bucket",
            &[REGION, SECRET, NO_MACHINE],
            "AWS_SECRET_ACCESS_KEY is set, but AWS_ACCESS_KEY_ID is not",
        ),
        ("a silent machine", "bucket", &[REGION, ("AWS_EC2_METADATA_SERVICE_ENDPOINT", &silent)], SET_BOTH),
        ("no such bucket", "missing", &no_bucket, "there is no such bucket; create it, or correct its name"),
        (
            "wrong keys",
            "missing",
            &[KEY, SECRET, REGION, ("AWS_ENDPOINT_URL", &server_url)],
            "the credentials are wrong",
        ),
        (
            "nobody at the endpoint",
            "bucket",
            &[KEY, SECRET, REGION, ("AWS_ENDPOINT_URL", "http://127.0.0.1:1")],
            "cannot connect to 127.0.0.1:1; check that the store runs there; if it has never answered, check the region",
        ),
        ("a silent endpoint", "bucket", &[KEY, SECRET, REGION, ("AWS_ENDPOINT_URL", &silent)], "no answer"),
        (
            "no host of that name",
            "bucket",
            &[KEY, SECRET, REGION, ("AWS_ENDPOINT_URL", "http://nobody.invalid")],
            "cannot find the host nobody.invalid",
        ),
        ("no name of a bucket", "a/b", &[KEY, SECRET, REGION], "Error: the name of the bucket is invalid"),
    ];
    thread::scope(|scope| {
        for (case, bucket, environment, words) in rows {
            scope.spawn(move || {
                let line = first_words(bucket, environment);
                assert!(line.contains(words) && !line.contains("hidden"), "{case}: {words}: {line}");
            });
        }
    });
}
