//! The command that a kubeconfig names for its user: silent at the start and in a term, missing, or fond of standard input.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use serde_json::json;
use tempfile::{TempDir, tempdir};

use super::tokens::kubeconfig;
use super::world::{Source, World};
use super::{end, put};
use crate::support::{LONG, Running, leaderelect, run, wait_until};

const LOCK: &str = "lease://default/a";

/// The line that a person reads while the command is silent.
const SILENT: &str = "the credentials were not loaded within 1s (--request-timeout); check the command that the kubeconfig names \
                      for the user, or allow more time";

/// A command that is silent until a file is there. It outlives no test that fails.
const SLOW: &str = "until [ -e given ]; do kill -0 $PPID || exit 1; sleep 0.1; done; cat given";

/// The output of a command.
fn credential(token: &str, life: Duration) -> String {
    let end = humantime::format_rfc3339_seconds(SystemTime::now() + life).to_string();
    let status = json!({"token": token, "expirationTimestamp": end});
    json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}).to_string()
}

/// A directory with a kubeconfig whose command is this script, which runs in the directory.
fn home(world: &World, script: &str) -> TempDir {
    let home = tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    put(home.path(), "script", &format!("cd {}\n{script}\n", home.path().display()));
    let exec = format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: IfAvailable, args: ['{}']}}}}",
        path("script")
    );
    put(home.path(), "config", &kubeconfig(&format!("{{server: '{}'}}", world.url()), &exec));
    home
}

/// A request that waits for a command is given up soon.
const SOON: &str = "1s";

/// A command has the time to say what it says, on a busy machine, too.
const PATIENTLY: &str = "15s";

fn candidate(home: &Path, lock: &str, timeout: &str, options: &[&str], command: &[&str]) -> Command {
    let options = [&LONG[..], &["--request-timeout", timeout], options].concat();
    let mut candidate = leaderelect(run(lock, &options, command));
    candidate.env("KUBECONFIG", home.join("config")).env("NO_PROXY", "*");
    candidate
}

const LEADS: [&str; 3] = ["sh", "-c", "echo leads; exec sleep 1000"];

#[test]
fn a_silent_command_of_a_kubeconfig_is_told_and_waited_for() {
    let world = World::new(&["new"], Source::Fails);
    let home = home(&world, SLOW);
    let mut leader = Running::of(candidate(home.path(), LOCK, SOON, &[], &LEADS));
    leader.wait_for_note(SILENT);
    // The same run, which has taken longer than a request may.
    put(home.path(), "given", &credential("new", super::HOUR));
    leader.wait_for("leads");
    end(leader);
}

#[test]
fn a_silent_command_of_a_kubeconfig_holds_no_end_and_outlives_none() {
    for is_signal in [true, false] {
        let world = World::new(&["new"], Source::Fails);
        let home = home(&world, "echo $$ > scratch; mv scratch pid; exec sleep 90");
        // A busy machine takes some of it to start.
        let options: &[&str] = if is_signal { &[] } else { &["--wait-timeout", "10s"] };
        let mut candidate = Running::of(candidate(home.path(), LOCK, SOON, options, &["true"]));
        candidate.wait_for_note(SILENT);
        wait_until("the command", || home.path().join("pid").exists());
        let command = fs::read_to_string(home.path().join("pid")).unwrap();
        if is_signal {
            candidate.signal(Signal::TERM);
        }
        let ended = candidate.end();
        assert_eq!(ended.code, Some(if is_signal { 128 + 15 } else { 69 }), "{ended:?}");
        assert!(is_signal || ended.stderr.lines().last().unwrap().contains(SILENT), "{ended:?}");
        wait_until("the end of the command", || !Path::new("/proc").join(command.trim()).exists());
    }
}

#[test]
fn a_command_of_a_kubeconfig_that_hangs_in_a_term_costs_no_request() {
    let world = World::new(&["old", "new"], Source::Fails);
    let home = home(&world, &format!("[ -e first ] && cat first && exec rm first; touch again; {SLOW}"));
    put(home.path(), "first", &credential("old", Duration::from_secs(16)));
    let mut leader = Running::of(candidate(home.path(), LOCK, SOON, &[], &LEADS));
    leader.wait_for("leads");
    // Eight seconds before the end.
    wait_until("the second run", || home.path().join("again").exists());
    let before = world.wait_until("old", |_| true);
    world.wait_until("old", |seen| seen.by["old"] >= before + 5);
    put(home.path(), "given", &credential("new", super::HOUR));
    world.wait_until("new", |seen| seen.by.get("new").is_some_and(|&requests| requests >= 3));
    end(leader);
}

/// A helper that reads standard input, as a source of credentials starts it.
#[test]
fn programs_that_give_credentials_leave_standard_input_to_the_leader() {
    for is_of_aws in [true, false] {
        let world = World::new(&["new"], Source::Fails);
        let home = home(&world, "cat >> taken; cat credential");
        put(home.path(), "input", "for the leader\n");
        let printed = match is_of_aws {
            true => super::world::json("new", SystemTime::now() + super::HOUR),
            false => credential("new", super::HOUR),
        };
        put(home.path(), "credential", &printed);
        let profile = format!("[default]\nregion = a\ncredential_process = sh {}/script\n", home.path().display());
        put(home.path(), "profile", &profile);
        let lock = if is_of_aws { world.lock() } else { LOCK.to_owned() };
        let mut candidate = candidate(home.path(), &lock, PATIENTLY, &[], &["cat"]);
        candidate.env("HOME", home.path()).env("AWS_CONFIG_FILE", home.path().join("profile"));
        candidate.stdin(File::open(home.path().join("input")).unwrap());
        let ended = Running::of(candidate).end();
        assert_eq!((ended.code, ended.stdout.trim_end()), (Some(0), "for the leader"), "{ended:?}");
        assert_eq!(fs::read_to_string(home.path().join("taken")).unwrap(), "");
    }
}

#[test]
fn a_command_of_a_kubeconfig_that_is_missing_or_wrong_is_named() {
    let world = World::new(&["new"], Source::Fails);
    let cases = [
        ("exit 7", "\"sh\", has failed (exit status: 7); run it by hand"),
        ("exit 0", "\"sh\", prints no ExecCredential; run it by hand"),
        ("echo Log in first", "\"sh\", prints no ExecCredential; run it by hand"),
        ("", "\"/nowhere/plugin\", cannot be started: No such file"),
    ];
    for (script, told) in cases {
        let home = home(&world, script);
        if script.is_empty() {
            let config = fs::read_to_string(home.path().join("config")).unwrap();
            put(home.path(), "config", &config.replace("command: sh", "command: /nowhere/plugin"));
        }
        // Only what is missing ends who waits.
        let options: &[&str] = if script.is_empty() { &[] } else { &["--no-wait"] };
        let ended = Running::of(candidate(home.path(), LOCK, PATIENTLY, options, &["true"])).end();
        let error = ended.stderr.lines().last().unwrap_or_default();
        assert!(ended.code != Some(0) && error.contains(told), "{script}: {ended:?}");
        assert!(error.contains("the command that the kubeconfig names for the user"), "{error}");
    }
}
