//! `run` when all goes well.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::{LONG, Place, Running, TIMINGS, end, end_of, leaderelect, run};

#[test]
fn the_command_knows_its_term_and_its_code_is_ours() {
    let place = Place::new();
    let lock = place.lock("a");
    let tell = "echo $LEADERELECTION_IDENTITY, $LEADERELECTION_FENCING_TOKEN, $LEADERELECTION_LOCK; exit 7";
    for token in 1..3 {
        let options = [&LONG[..], &["--identity", "node-1"]].concat();
        let ended = end(&run(&lock, &options, &["sh", "-c", tell]));
        assert_eq!(ended.code, Some(7), "{ended:?}");
        assert_eq!(ended.stdout, format!("node-1, {token}, {lock}\n"));
        for told in [format!("competing for {lock} as node-1"), format!("leading with fencing token {token}")] {
            assert!(ended.stderr.contains(&told), "{ended:?}");
        }
        let record = place.record("a");
        assert!(record.is_released(), "{record:?}");
        assert_eq!(record.leader_transitions, token);
    }
}

#[test]
fn quiet_is_quiet() {
    let place = Place::new();
    let ended = end(&[&["--quiet"][..], &run(&place.lock("a"), &LONG, &["echo", "done"])].concat());
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "done\n", ""));
}

#[test]
fn a_command_that_dies_of_a_signal_is_told_as_shells_do() {
    let place = Place::new();
    let ended = end(&run(&place.lock("a"), &LONG, &["sh", "-c", "kill -KILL $$"]));
    assert_eq!(ended.code, Some(128 + 9), "{ended:?}");
}

#[test]
fn a_command_that_cannot_be_run_is_told_as_shells_do() {
    let place = Place::new();
    let ended = end(&run(&place.lock("a"), &LONG, &["no-such-command"]));
    assert_eq!(ended.code, Some(127), "{ended:?}");
    assert!(ended.stderr.contains("no-such-command: command not found"), "{ended:?}");
    assert!(!place.path("locks").exists(), "it competed with nothing to run");

    let program = place.path("text");
    fs::write(&program, "no program").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
    let ended = end(&run(&place.lock("a"), &LONG, &[program.to_str().unwrap()]));
    assert_eq!(ended.code, Some(126), "{ended:?}");
    assert!(place.record("a").is_released());
}

#[test]
fn a_campaign_ends_with_a_command_that_cannot_be_run() {
    let place = Place::new();
    let program = place.path("text");
    fs::write(&program, "no program").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
    let options = [&TIMINGS[..], &["--campaign"]].concat();
    let ended = Running::start(&run(&place.lock("a"), &options, &[program.to_str().unwrap()])).end();
    assert_eq!(ended.code, Some(126), "{ended:?}");
    assert!(ended.stderr.contains("cannot run"), "{ended:?}");
    assert!(place.record("a").is_released());
    // A command may end with the same code for reasons of its own.
    let mut running = Running::start(&run(&place.lock("a"), &options, &["sh", "-c", "exit 126"]));
    for _ in 0..2 {
        running.wait_for_note("the command ended with exit status: 126");
    }
}

/// The lock, as a process saw it that a command left behind and that was told to end; `None` if that process was too slow,
/// and was killed.
fn seen_by_what_was_left_behind() -> Option<String> {
    let place = Place::new();
    // Its standard output ends only when the last process has.
    // A renewal may remove the file between its listing and its reading.
    let child = "trap 'sleep 0.5; until now=$(cat $0/$(ls -v $0 | grep -v tmp | tail -1)); do :; done; \
                 echo record $now; exit' TERM; echo up; while :; do sleep 0.05; done";
    let command = format!("sh -c \"$1\" {} & read line; exit 3", place.path("locks/a/@").display());
    let fifo = place.path("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let command = format!("exec 3<>{fifo}; {} ", command.replace("read line", "read line <&3"), fifo = fifo.display());
    let lock = place.lock("a");
    let mut running = Running::start(&run(&lock, &LONG, &["sh", "-c", &command, "sh", child]));
    running.wait_for("up");
    fs::write(&fifo, "go on\n").unwrap();
    let ended = running.end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(place.record("a").is_released());
    ended.stdout.lines().find_map(|line| line.strip_prefix("record ").map(str::to_owned))
}

#[test]
fn what_a_command_leaves_behind_is_ended_before_the_release() {
    let seen = (0..5).find_map(|_| seen_by_what_was_left_behind()).expect("the child was not told");
    assert!(!seen.contains(r#""holderIdentity":"""#), "released while a process still ran: {seen}");
}

#[test]
fn of_many_one_works_at_a_time_and_tokens_rise() {
    const CANDIDATES: usize = 5;
    let place = Place::new();
    let (lock, log) = (place.lock("a"), place.path("log"));
    let work = format!(
        "echo begin $LEADERELECTION_FENCING_TOKEN >> {log}; sleep 0.1; echo end $LEADERELECTION_FENCING_TOKEN >> {log}",
        log = log.display()
    );
    let running: Vec<_> = (0..CANDIDATES).map(|_| Running::start(&run(&lock, &LONG, &["sh", "-c", &work]))).collect();
    for running in running {
        let ended = running.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    let expected: String = (1..=CANDIDATES).map(|token| format!("begin {token}\nend {token}\n")).collect();
    assert_eq!(fs::read_to_string(log).unwrap(), expected);
}

#[test]
fn a_campaign_runs_the_command_term_after_term() {
    let place = Place::new();
    let options = [&TIMINGS[..], &["--campaign"]].concat();
    let lock = place.lock("a");
    // Who kills the command alone ends no campaign.
    let command = "echo term $LEADERELECTION_FENCING_TOKEN; kill -INT $$";
    let mut running = Running::start(&run(&lock, &options, &["sh", "-c", command]));
    for term in 1..3 {
        assert_eq!(running.wait_for("term "), term.to_string());
    }
}

#[test]
fn wrong_usage_has_a_code_of_its_own_and_is_shown_what_is_right() {
    let place = Place::new();
    let lock = place.lock("a");
    let run_with = |options: &[&'static str]| {
        let options: Vec<&str> = options.to_vec();
        end(&run(&lock, &options, &["true"]))
    };
    for (ended, right) in [
        (end(&["run", "--lock", "s3://bucket", "--", "true"]), "s3://bucket/key?region="),
        (end(&["run", "--", "true"]), "--lock <URL>"),
        (run_with(&["--lease-duration", "15"]), "15s"),
        (
            run_with(&["--lease-duration", "5s", "--renew-deadline", "6s"]),
            "--lease-duration (5s) must be greater than --renew-deadline (6s); set --lease-duration",
        ),
        (run_with(&["--retry-period", "9s"]), "--renew-deadline (10s) must be greater than --retry-period (9s) times"),
        (end(&["run", "--lock", &lock, "true"]), "tip: the command comes after '--'"),
        (end(&["run", &lock, "true"]), "tip: the command comes after '--'"),
        (end(&["watch", &lock, "true"]), "tip: the command comes after '--'"),
        (end(&["watch", &lock, "--interval", "0s"]), "minimum is 10ms"),
        (end(&["dashboard", &place.prefix(), "--refresh", "0s"]), "minimum is 10ms"),
        (run_with(&["--lease-duration", "400000000000years"]), "must be at most 24h, the limit of this lock"),
        (
            end(&["serve", "--lock", &lock, "--listen", "127.0.0.1:0", "--lease-duration", "400000000000years"]),
            "set --lease-duration",
        ),
        (end(&["probe", &lock, "--lease-duration", "400000000000years"]), "set --lease-duration"),
        (run_with(&["--lease-time", "3s"]), "a similar argument exists: '--lease-duration'"),
        (run_with(&["--identity", ""]), "--identity"),
        (run_with(&["--service", ""]), "--service (\"\")"),
        (run_with(&["--quorum", "2"]), "--quorum (2) is more than the number of locks (1)"),
        (end(&["run", &lock, "--max-runtime", "1h"]), "<COMMAND>"),
        (run_with(&["--campaign", "--no-wait"]), "cannot be used with"),
        (end(&["no-such-command"]), "Usage: leaderelect"),
    ] {
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(64), ""), "{ended:?}");
        assert!(ended.stderr.contains(right), "{right}: {ended:?}");
        assert!(ended.stderr.starts_with("leaderelect: error: "), "{ended:?}");
    }
    // Of an option, the way to give it to the command is told already.
    let ended = run_with(&["--frobnicate"]);
    assert_eq!(ended.stderr.matches("tip: ").count(), 1, "{ended:?}");
    // A URL is no command.
    let ended = end(&["run", &place.prefix()]);
    assert!(ended.code == Some(64) && !ended.stderr.contains("tip: "), "{ended:?}");
}

#[test]
fn no_secret_of_a_url_is_shown() {
    let url = "http://127.0.0.1:1/account/container/lock?sv=2024&sig=SECRET";
    let quick = ["--lease-duration", "1s", "--renew-deadline", "600ms", "--retry-period", "100ms"];
    let ended = end(&run(url, &quick, &["true"]));
    assert_eq!(ended.code, Some(69), "{ended:?}");
    assert!(ended.stderr.contains("127.0.0.1:1/account/container/lock"), "{ended:?}");
    assert!(!ended.stderr.contains("SECRET"), "{ended:?}");
    for args in
        [vec!["status", "a", url], vec!["run", url, "word"], vec!["status", "http://host/?sig=SECRET"], vec![url]]
    {
        let ended = end(&args);
        assert_eq!(ended.code, Some(64), "{ended:?}");
        assert!(!ended.stderr.contains("SECRET"), "{ended:?}");
    }
    for arg in [b"--unknown\xff?sig=SECRET".as_slice(), b"http://host/\xff?sig=SECRET"] {
        let ended = end_of(leaderelect([OsStr::new("status"), OsStr::from_bytes(arg), OsStr::new("more")]));
        assert_eq!(ended.code, Some(64), "{ended:?}");
        assert!(!ended.stderr.contains("SECRET"), "{ended:?}");
    }
    let mut verbose = leaderelect(["-vv", "status", url]);
    verbose.env("RUST_LOG", "trace");
    let ended = end_of(verbose);
    assert_eq!(ended.code, Some(69), "{ended:?}");
    assert!(!ended.stderr.contains("SECRET"), "{ended:?}");
}

#[test]
fn a_store_that_is_out_of_reach_or_refuses_has_a_code_of_its_own() {
    let quick = ["--lease-duration", "1s", "--renew-deadline", "600ms", "--retry-period", "100ms"];
    let mut command = leaderelect(run("s3://bucket/lock?endpoint=http://127.0.0.1:1", &quick, &["true"]));
    command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "hidden");
    let ended = end_of(command);
    assert_eq!(ended.code, Some(69), "{ended:?}");
    assert!(ended.stderr.contains("s3://bucket/lock"), "{ended:?}");

    let place = Place::new();
    fs::write(place.path("locks"), "a file where a directory should be").unwrap();
    let ended = end(&run(&place.lock("a"), &LONG, &["true"]));
    assert_eq!(ended.code, Some(69), "{ended:?}");
}

#[test]
fn settings_that_cannot_be_right_are_wrong_usage() {
    for command in ["status", "list"] {
        let mut command = leaderelect([command, "az://account/container/lock"]);
        command.env("AZURE_STORAGE_CONNECTION_STRING", "AccountName=account;AccountKey:hidden");
        let ended = end_of(command);
        assert_eq!(ended.code, Some(64), "{ended:?}");
        assert!(ended.stderr.contains("a valid one looks like") && !ended.stderr.contains("hidden"), "{ended:?}");
    }
}

#[test]
fn an_object_that_is_no_record_is_left_alone() {
    let place = Place::new();
    place.overwrite("a", "somebody's photo");
    let ended = end(&run(&place.lock("a"), &LONG, &["true"]));
    assert_eq!(ended.code, Some(65), "{ended:?}");
    assert!(ended.stderr.contains("not a leader election record"), "{ended:?}");
}
