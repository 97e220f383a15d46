//! Credentials that are replaced, end, or cannot be had for a while: each source of the AWS SDK, beside a real process.

mod certificates;
#[cfg(feature = "all-tests")]
mod commands;
mod tokens;
mod world;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::{TempDir, tempdir};

use self::world::{Source, World};
use crate::support::{LONG, Running, leaderelect, run, wait_until};

const HOUR: Duration = Duration::from_secs(3600);

/// A source of credentials, as people set one up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Process,
    Container,
    Machine,
    WebIdentity,
    Sso,
}

/// Puts content in the place of a file, at once.
fn put(directory: &Path, name: &str, content: &str) {
    let scratch = directory.join("scratch");
    fs::write(&scratch, content).unwrap();
    fs::rename(scratch, directory.join(name)).unwrap();
}

/// A command that prints a file, and leaves a mark before that.
fn marked(file: &Path) -> String {
    let file = file.display();
    format!("touch {file}.asked; cat {file}")
}

/// Waits until that command has run.
fn wait_for_command(file: &Path) {
    wait_until("a command", || file.with_extension("asked").exists());
}

impl Kind {
    /// The environment of a process with this source, whose files are in `home`.
    fn environment(self, home: &Path, world: &World) -> Vec<(&'static str, String)> {
        let path = |name: &str| home.join(name).to_str().unwrap().to_owned();
        let (url, profile) = (world.url(), ("AWS_CONFIG_FILE", path("config")));
        match self {
            Self::File => vec![("AWS_SHARED_CREDENTIALS_FILE", path("credentials"))],
            Self::Process => {
                put(home, "config", &format!("[default]\ncredential_process = {}\n", marked(&home.join("keys"))));
                vec![profile]
            }
            Self::Container => vec![("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{url}/keys"))],
            Self::Machine => vec![
                ("AWS_EC2_METADATA_DISABLED", "false".to_owned()),
                ("AWS_EC2_METADATA_SERVICE_ENDPOINT", url.to_owned()),
            ],
            Self::WebIdentity => vec![
                ("AWS_WEB_IDENTITY_TOKEN_FILE", path("token")),
                ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/r".to_owned()),
                ("AWS_ENDPOINT_URL_STS", url.to_owned()),
            ],
            Self::Sso => {
                let start = "sso_start_url = https://sso.invalid/start\nsso_region = us-east-1";
                let role = "sso_account_id = 123456789012\nsso_role_name = r";
                put(home, "config", &format!("[default]\n{start}\n{role}\n"));
                vec![profile, ("AWS_ENDPOINT_URL_SSO", url.to_owned())]
            }
        }
    }

    /// Lets the source give this key from now on.
    fn give(self, home: &Path, world: &World, key: &'static str) {
        let far = std::time::SystemTime::now() + HOUR;
        world.set_source(Source::Gives(key, HOUR));
        match self {
            Self::File => {
                let keys = format!("[default]\naws_access_key_id = {key}\naws_secret_access_key = hidden\n");
                put(home, "credentials", &keys);
            }
            Self::Process => put(home, "keys", &world::json(key, far)),
            Self::WebIdentity => put(home, "token", key),
            Self::Sso => {
                let cache = home.join(".aws/sso/cache");
                fs::create_dir_all(&cache).unwrap();
                let until = humantime::format_rfc3339_seconds(far);
                // SHA-1 of the start URL.
                let name = "24259bbb4f9566835fa614515705228e45bf6f67.json";
                put(&cache, name, &format!(r#"{{"accessToken":"{key}","expiresAt":"{until}","region":"us-east-1"}}"#));
            }
            Self::Container | Self::Machine => {}
        }
    }
}

/// A process that leads, once there are keys.
fn leader(home: &TempDir, lock: &str, environment: &[(&'static str, String)]) -> Running {
    let options = [&LONG[..], &["--wait-timeout", "1h"]].concat();
    let mut command: Command = leaderelect(run(lock, &options, &["sh", "-c", "echo leads; exec sleep 1000"]));
    command.env("HOME", home.path()).env("AWS_EC2_METADATA_DISABLED", "true");
    command.env("NO_PROXY", "*").envs(environment.iter().map(|(name, value)| (name, value)));
    Running::of(command)
}

/// Ends a process that has led all the time.
fn end(leader: Running) {
    leader.signal(Signal::TERM);
    let ended = leader.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(128 + 15), "leads"), "{ended:?}");
    assert!(!ended.stderr.contains("hidden"), "{}", ended.stderr);
}

/// Tries all cases at once: most of their time is spent waiting.
fn at_once<C: Sync>(cases: &[C], test: impl Fn(&C) + Sync) {
    thread::scope(|scope| cases.iter().for_each(|case| drop(scope.spawn(|| test(case)))));
}

#[test]
fn keys_are_replaced_in_every_source() {
    let cases = [
        (Kind::File, (403, "InvalidAccessKeyId")),
        (Kind::Process, (400, "ExpiredToken")),
        (Kind::Container, (403, "ExpiredToken")),
        (Kind::Machine, (401, "")),
        (Kind::WebIdentity, (400, "InvalidToken")),
        (Kind::Sso, (403, "SignatureDoesNotMatch")),
    ];
    at_once(&cases, |&(kind, refusal)| {
        let (home, world) = (tempdir().unwrap(), World::new(&["old"], Source::Fails));
        let environment = kind.environment(home.path(), &world);
        kind.give(home.path(), &world, "old");
        let mut leader = leader(&home, &world.lock(), &environment);
        leader.wait_for("leads");
        kind.give(home.path(), &world, "new");
        world.accept_only("new", refusal);
        world.wait_until("new", |seen| seen.by.get("new").is_some_and(|&requests| requests >= 3));
        end(leader);
    });
}

#[test]
fn a_source_that_is_down_at_the_start_is_waited_for() {
    let cases = [
        (Kind::Container, Source::Fails),
        (Kind::Container, Source::IsSilent),
        (Kind::Container, Source::Closes),
        (Kind::Machine, Source::Fails),
        (Kind::Machine, Source::Closes),
        (Kind::WebIdentity, Source::Fails),
        (Kind::Sso, Source::Fails),
        (Kind::Sso, Source::IsSilent),
        (Kind::Sso, Source::Closes),
    ];
    at_once(&cases, |&(kind, source)| {
        let (home, world) = (tempdir().unwrap(), World::new(&["new"], source));
        let environment = kind.environment(home.path(), &world);
        // What its files have is right.
        kind.give(home.path(), &world, "new");
        world.set_source(source);
        let mut leader = leader(&home, &world.lock(), &environment);
        // One load asks up to four times.
        let enough = if matches!(source, Source::IsSilent) { 1 } else { 5 };
        world.wait_until("new", |seen| seen.asked >= enough);
        world.set_source(Source::Gives("new", HOUR));
        leader.wait_for("leads");
        end(leader);
    });
}

/// The program of `credential_process` fails, or is silent for longer than a request may take.
#[test]
fn a_program_without_keys_is_waited_for() {
    at_once(&[false, true], |&is_silent| {
        let (home, world) = (tempdir().unwrap(), World::new(&["new"], Source::Fails));
        let environment = Kind::Process.environment(home.path(), &world);
        let keys = home.path().join("keys");
        if is_silent {
            assert!(Command::new("mkfifo").arg(&keys).status().unwrap().success());
        }
        let mut leader = leader(&home, &world.lock(), &environment);
        wait_for_command(&keys);
        match is_silent {
            // Somebody reads the pipe already.
            true => fs::write(&keys, world::json("new", std::time::SystemTime::now() + HOUR)).unwrap(),
            false => Kind::Process.give(home.path(), &world, "new"),
        }
        leader.wait_for("leads");
        end(leader);
    });
}

/// The proxy sees which host is asked.
#[test]
fn an_unknown_region_is_asked_for_again() {
    let (home, world) = (tempdir().unwrap(), World::new(&[], Source::Fails));
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = leaderelect(run("s3://bucket/lock", &[&LONG[..], &["--wait-timeout", "1h"]].concat(), &["true"]));
    command.env("HOME", home.path()).env_remove("AWS_REGION").env("NO_PROXY", "");
    command.env("HTTPS_PROXY", format!("http://{}", proxy.local_addr().unwrap()));
    command.envs(Kind::Machine.environment(home.path(), &world));
    let running = Running::of(command);
    world.wait_until("", |seen| seen.regions >= 1);
    world.set_source(Source::Gives("new", HOUR));
    let (asked, _) = proxy.accept().unwrap();
    let mut line = String::new();
    BufReader::new(asked).read_line(&mut line).unwrap();
    assert!(line.starts_with("CONNECT bucket.s3.eu-north-1.amazonaws.com:443 "), "{line}");
    drop(running);
}

#[test]
fn a_source_that_fails_or_is_silent_before_the_end_costs_no_request() {
    at_once(&[Source::Fails, Source::IsSilent], |&source| {
        let short = Source::Gives("old", Duration::from_secs(12));
        let (home, world) = (tempdir().unwrap(), World::new(&["old", "new"], short));
        let mut leader = leader(&home, &world.lock(), &Kind::Container.environment(home.path(), &world));
        leader.wait_for("leads");
        world.set_source(source);
        // Six seconds before the end.
        let before = world.wait_until("old", |seen| seen.asked >= 2);
        world.wait_until("old", |seen| seen.by["old"] >= before + 3);
        world.set_source(Source::Gives("new", HOUR));
        world.wait_until("new", |seen| seen.by.contains_key("new"));
        end(leader);
    });
}
