//! Options from the environment and from files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::support::{LONG, PROGRAM, Place, end, end_of, leaderelect, run};

#[test]
fn the_environment_sets_options_and_the_command_line_wins() {
    let place = Place::new();
    let variables = [
        ("LEADERELECT_LOCK", place.lock("a")),
        ("LEADERELECT_IDENTITY", "node-1".to_owned()),
        ("LEADERELECT_SKIP_EXIT_CODE", "3".to_owned()),
        ("LEADERELECT_REQUIRE_PROBE", "no".to_owned()),
        ("LEADERELECT_QUIET", "1".to_owned()),
    ];
    let told = end_of({
        let mut command = leaderelect(["run", "--", "sh", "-c", "echo $LEADERELECTION_IDENTITY $LEADERELECTION_LOCK"]);
        command.envs(variables.clone());
        command
    });
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""), "{told:?}");
    assert_eq!(told.stdout, format!("node-1 {}\n", place.lock("a")));

    let told = end_of({
        let mut command =
            leaderelect(["run", "--identity", "node-2", "--", "sh", "-c", "echo $LEADERELECTION_IDENTITY"]);
        command.envs(variables.clone());
        command
    });
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), "node-2\n"), "{told:?}");

    let told = end_of({
        let mut command = leaderelect(["status", "-o", "json"]);
        command.envs(variables);
        command
    });
    assert!(told.code == Some(0) && told.stdout.contains(r#""fencingToken":2"#), "{told:?}");
}

#[test]
fn the_command_does_not_get_what_leaderelect_was_told() {
    let place = Place::new();
    let (lock, options) = (place.lock("a"), [&LONG[..], &["--identity", "node-1"]].concat());
    let mut command = leaderelect(run(&lock, &options, &["env"]));
    command.env("LEADERELECT_SKIP_EXIT_CODE", "0").env("LEADERELECT_UNKNOWN", "secret").env("OTHER", "kept");
    command.env("LEADERELECTION_HTTP_TOKEN", "secret of the status page");
    let ended = end_of(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stdout.contains("LEADERELECT_") && !ended.stdout.contains("secret"), "{ended:?}");
    assert!(ended.stdout.contains("OTHER=kept"), "{ended:?}");
    assert!(ended.stdout.contains("LEADERELECTION_LOCK=file://"), "{ended:?}");
}

#[test]
fn a_variable_of_no_option_is_named() {
    let place = Place::new();
    let lock = place.lock("a");
    let mut command = leaderelect(run(&lock, &LONG, &["true"]));
    command.env("LEADERELECT_LEASE_TIME", "4s").env("LEADERELECT_PROBE_LISTEN", "127.0.0.1:0");
    command.env("LEADERELECT_SERVICE_HOST", "10.0.0.1").env("LEADERELECT_PORT", "tcp://10.0.0.1:80");
    command.env("LEADERELECT_QUIET", "1");
    let ended = end_of(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stderr.matches("is set, but no option has this variable").count(), 1, "{ended:?}");
    assert!(ended.stderr.contains("LEADERELECT_LEASE_TIME is set") && !ended.stderr.contains("4s"), "{ended:?}");
}

#[test]
fn former_names_of_options_and_variables_keep_working() {
    let place = Place::new();
    let lock = place.lock("a");
    let options = ["--lease", "6s", "--renew", "4s", "--retry", "1s", "--purpose", "billing", "--once-for", "monday"];
    let ended = end(&run(&lock, &options, &["true"]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let said = end(&["status", &lock]).stdout;
    assert!(said.contains("monday") && said.contains("billing"), "{said}");

    let with = |variables: &[(&str, &str)]| {
        let mut command = leaderelect(run(&lock, &[], &["true"]));
        command.envs(variables.iter().copied());
        end_of(command)
    };
    let former = [("LEADERELECT_LEASE", "3s"), ("LEADERELECT_RENEW", "4s")];
    let wrong = with(&former);
    assert!(wrong.code == Some(64) && wrong.stderr.contains("LEADERELECT_RENEW"), "it is named: {wrong:?}");
    assert!(!wrong.stderr.contains("no option has this variable"), "{wrong:?}");
    let current = [("LEADERELECT_RENEW_DEADLINE", "2s"), ("LEADERELECT_RETRY", "400ms")];
    let won = with(&[&former[..], &current].concat());
    assert_eq!(won.code, Some(0), "the current name wins: {won:?}");
    let job = [("LEADERELECT_ONCE_FOR", "monday"), ("LEADERELECT_PURPOSE", "billing")];
    let done = with(&job);
    assert!(done.code == Some(0) && done.stderr.contains("monday is already done"), "{done:?}");
}

#[test]
fn the_url_may_be_in_a_file() {
    let place = Place::new();
    let (lock, file) = (place.lock("a"), place.path("url"));
    fs::write(&file, format!("{lock}\n")).unwrap();
    let file = file.to_str().unwrap();
    let options = [&["run", "--lock-file", file][..], &LONG, &["--", "true"]].concat();
    assert_eq!(end(&options).code, Some(0));
    assert!(place.record("a").is_released());
    let status = end(&["status", "--lock-file", file]);
    assert!(status.code == Some(0) && status.stdout.contains(&lock), "{status:?}");

    let both = end(&["run", "--lock", &lock, "--lock-file", file, "--", "true"]);
    assert_eq!(both.code, Some(64), "{both:?}");
    assert!(both.stderr.contains("the command line names the lock more than once"), "{both:?}");
    for both in [&["status", &lock, "--lock-file", file][..], &["status", &lock, "--lock", &lock]] {
        assert_eq!(end(both).code, Some(64), "{both:?}");
    }
    let mut command = leaderelect(["status", "--lock-file", file]);
    command.env("LEADERELECT_LOCK", place.lock("b"));
    let won = end_of(command);
    assert!(won.code == Some(0) && won.stdout.contains(&lock), "the command line wins over the environment: {won:?}");
    let neither = end(&["status"]);
    assert_eq!(neither.code, Some(64), "{neither:?}");
    assert!(neither.stderr.contains("--lock-file <PATH>"), "{neither:?}");
}

/// Compose files, units and charts set to nothing what nobody has chosen.
#[test]
fn a_variable_that_is_empty_is_not_set() {
    let place = Place::new();
    let mut command = leaderelect(run(&place.lock("a"), &LONG, &["true"]));
    for option in [
        "LOCK",
        "LOCK_FILE",
        "IDENTITY",
        "PURPOSE",
        "SERVICE",
        "LEASE",
        "LEASE_DURATION",
        "RANK",
        "NO_WAIT",
        "WAIT_TIMEOUT",
        "ONCE_FOR",
        "SLOTS",
        "ALSO",
        "NEEDED",
        "LOG_FORMAT",
        "KILL_AFTER",
        "UNKNOWN",
    ] {
        command.env(format!("LEADERELECT_{option}"), "");
    }
    let ended = end_of(command);
    assert_eq!((ended.code, ended.stderr.contains("LEADERELECT_")), (Some(0), false), "{ended:?}");
}

#[test]
fn what_nobody_sees_in_a_variable_names_no_other_lock() {
    let place = Place::new();
    let lock = place.lock("a");
    for (variable, value, problem) in [
        ("LEADERELECT_LOCK", format!("{lock}\r"), "the URL ends with U+000D (a carriage return)"),
        ("LEADERELECT_LOCK", format!("{lock}\n"), "the URL is empty; if a variable sets it, remove the line feed"),
        ("LEADERELECT_LOCK", format!("{lock} "), "the URL ends with U+0020 (a space)"),
        ("LEADERELECT_LOCK", format!("\u{feff}{lock}"), "the URL begins with U+FEFF (a byte order mark)"),
        ("LEADERELECT_LOCK", format!("\"{lock}\""), "the URL begins with a quotation mark (\")"),
        ("LEADERELECT_LOCK", format!("LEADERELECT_LOCK={lock}"), "the URL begins with the name of a variable and ="),
        ("LEADERELECT_SECOND_LOCK", format!("{lock}\u{a0}"), "the URL ends with U+00A0"),
        ("LEADERELECT_IDENTITY", "node-1\r".to_owned(), "ends with U+000D"),
        ("LEADERELECT_SERVICE", "billing ".to_owned(), "LEADERELECT_SERVICE (\"billing \") ends with U+0020"),
        ("LEADERELECT_JOB_ID", "2026-11-22\r".to_owned(), "ends with U+000D"),
        ("LEADERELECT_JOB_ID", "'2026-11-22'".to_owned(), "stands in quotation marks"),
    ] {
        let mut command = leaderelect([&["run"][..], &LONG, &["--", "true"]].concat());
        command.env("LEADERELECT_LOCK", &lock).env(variable, value);
        let ended = end_of(command);
        assert_eq!(ended.code, Some(64), "{variable}: {ended:?}");
        assert!(ended.stderr.contains(problem) && ended.stderr.contains(variable), "{variable}: {ended:?}");
    }
    assert!(!place.path("locks").exists(), "nobody has led");
}

#[test]
fn a_flag_that_a_variable_turns_off_excludes_no_option() {
    let place = Place::new();
    for (variable, off) in [("LEADERELECT_NO_WAIT", "0"), ("LEADERELECT_CAMPAIGN", "false")] {
        let mut command = leaderelect(run(&place.lock("a"), &["--wait-timeout", "1h"], &["true"]));
        command.env(variable, off);
        let ended = end_of(command);
        assert!(ended.code == Some(0) && !ended.stderr.contains("LEADERELECT_"), "{variable}: {ended:?}");
    }
}

#[test]
fn a_variable_names_the_parts_of_a_lock_in_lines() {
    let place = Place::new();
    let parts = ["a", "b", "c"].map(|name| place.lock(name));
    let mut command = leaderelect(["run", "--", "true"]);
    command.env("LEADERELECT_LOCK", parts.join("\n"));
    let ended = end_of(command);
    assert!(ended.code == Some(0) && ended.stderr.contains(&parts.join(" and ")), "{ended:?}");
}

#[test]
fn a_conflict_with_the_environment_is_named_and_no_secret_is() {
    let place = Place::new();
    let file = place.path("url");
    fs::write(&file, "ftp://host/?sig=SECRET").unwrap();
    let mut command = leaderelect(["status", "--lock-file", file.to_str().unwrap()]);
    command.env("LEADERELECT_LOCK", "https://a.blob.core.windows.net/c/b?sig=SECRET");
    let both = end_of(command);
    assert_eq!(both.code, Some(64), "{both:?}");
    assert!(both.stderr.contains("The environment sets LEADERELECT_LOCK."), "{both:?}");
    assert!(!both.stderr.contains("SECRET"), "{both:?}");

    let wrong = end(&["status", "--lock-file", file.to_str().unwrap()]);
    assert_eq!(wrong.code, Some(64), "{wrong:?}");
    assert!(wrong.stderr.contains("--lock-file") && !wrong.stderr.contains("SECRET"), "{wrong:?}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let open = end(&["status", "--lock-file", file.to_str().unwrap()]);
    assert!(open.code == Some(64) && open.stderr.contains("every user can change it"), "{open:?}");
    let missing = end(&["status", "--lock-file", "/nonexistent/url"]);
    assert_eq!(missing.code, Some(64), "{missing:?}");
    assert!(missing.stderr.contains("cannot read /nonexistent/url"), "{missing:?}");

    let mut command = leaderelect(["run", "--lock", "file:///nonexistent/a", "--", "true"]);
    let ended = end_of({
        command.env("LEADERELECT_LEASE_DURATION", "https://a.blob.core.windows.net/c/b?sig=SECRET");
        command
    });
    assert_eq!(ended.code, Some(64), "{ended:?}");
    assert!(ended.stderr.contains("LEADERELECT_LEASE_DURATION") && !ended.stderr.contains("SECRET"), "{ended:?}");
}

#[test]
fn the_command_gets_arguments_as_long_as_the_system_takes() {
    let place = Place::new();
    let (long, many) = ("x".repeat(131_071), vec!["y"; 100_000]);
    let words = [&["sh", "-c", "echo ${#1} $#", "sh", &long][..], &many].concat();
    let ended = end(&run(&place.lock("a"), &LONG, &words));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "131071 100001\n"), "{}", ended.stderr);
}

#[test]
fn sockets_that_systemd_has_opened_for_leaderelect_are_the_command_s() {
    let place = Place::new();
    let lock = place.lock("a");
    for (named, told) in [("$$", "mine"), ("1", "1")] {
        // The number of the shell is that of `leaderelect`, which it becomes.
        let become_it = format!("export LISTEN_FDS=1 LISTEN_PID={named}; exec \"$@\"");
        let says = "[ \"$LISTEN_PID\" = $$ ] && echo mine || echo \"$LISTEN_PID\"";
        let mut command = Command::new("sh");
        command
            .args(["-c", &become_it, "sh", PROGRAM])
            .args(run(&lock, &LONG, &["sh", "-c", says]))
            .stdin(Stdio::null());
        let ended = end_of(command);
        assert_eq!((ended.code, ended.stdout.trim()), (Some(0), told), "{ended:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_missing_proc_is_named_before_the_lease_is_taken() {
    let place = Place::new();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", "umount -l /proc && exec \"$@\"", "sh", PROGRAM]);
    command.args(run(&place.lock("a"), &LONG, &["true"])).stdin(Stdio::null());
    let ended = end_of(command);
    if ended.stderr.contains("unshare") || ended.stderr.contains("umount") {
        return println!("skipped: only root can take /proc away");
    }
    assert_eq!(ended.code, Some(74), "{ended:?}");
    assert!(ended.stderr.contains("/proc is not mounted"), "{ended:?}");
    assert!(!place.path("locks").exists());
}
