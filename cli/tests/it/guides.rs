//! The commands of the guides, as they stand there: those of `leaderelect` run, and those that need a cluster or a cloud run
//! as far as that is possible.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use leaderelection_integration_tests::servers::kube_api::KubeApi;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{PATIENCE, PROGRAM, Place, Running, end_of};

/// The beginnings of commands that do not run here, and the reasons.
const ELSEWHERE: [(&str, &str); 4] = [
    ("cargo test", "what runs this test"),
    ("LEADERELECTION_TEST_", "needs a real service"),
    ("docker ", "needs Docker"),
    ("# ", "needs a machine with systemd to install on: deploy/check/systemd"),
];

/// Programs that only tell what they were asked for.
const STUBS: [&str; 2] = ["kubectl", "aws"];

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

pub(crate) fn guide(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap()
}

/// The commands of a text, in order. A command may go on in the next line.
pub(crate) fn commands(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut inside = None::<Vec<&str>>;
    for line in text.lines().map(str::trim) {
        match &mut inside {
            None if line == "```console" => inside = Some(Vec::new()),
            Some(_) if line == "```" => blocks.extend(inside.take().map(|lines| lines.join("\n"))),
            Some(lines) => lines.push(line),
            None => {}
        }
    }
    let joined: Vec<_> = blocks.iter().map(|block| block.replace("\\\n", " ")).collect();
    let lines = joined.iter().flat_map(|block| block.lines());
    lines
        .filter_map(|line| line.strip_prefix("$ ").or(line.starts_with("# ").then_some(line)).map(str::to_owned))
        .collect()
}

fn reason_to_leave_out(command: &str) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(beginning, _)| command.starts_with(beginning)).map(|(_, reason)| *reason)
}

/// A machine on which the commands run: the programs that they name, a directory for the bucket, and a cluster's API.
struct Machine {
    place: Place,
    api: KubeApi,
    _runtime: tokio::runtime::Runtime,
}

impl Machine {
    fn new() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let machine = Self { place: Place::new(), api: runtime.block_on(KubeApi::start()), _runtime: runtime };
        fs::create_dir(machine.place.path("bin")).unwrap();
        // A bucket has no directories that somebody creates.
        fs::create_dir(machine.place.path("locks")).unwrap();
        // Any other build, such as a download.
        let program = std::env::var_os("LEADERELECTION_TEST_PROGRAM").unwrap_or_else(|| PROGRAM.into());
        std::os::unix::fs::symlink(program, machine.program("leaderelect")).unwrap();
        for stub in STUBS {
            machine
                .install(stub, &format!("{{ echo {stub} \"$@\"; [ -t 0 ] || cat; }} >>{}", machine.asked().display()));
        }
        machine.install("worker", "echo working; exec sleep 600");
        fs::write(machine.place.path("kubeconfig"), machine.api.kubeconfig().to_string()).unwrap();
        machine
    }

    fn program(&self, name: &str) -> PathBuf {
        self.place.path("bin").join(name)
    }

    fn install(&self, name: &str, script: &str) {
        fs::write(self.program(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(self.program(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The file with the questions to the stubs.
    fn asked(&self) -> PathBuf {
        self.place.path("asked")
    }

    /// The command in a shell, with a directory in the place of the bucket.
    fn shell(&self, command: &str) -> Command {
        let here =
            command.replace("s3://bucket/", &self.place.file("")).replace("file://$HOME/locks/", &self.place.prefix());
        let mut shell = Command::new("env");
        let path = format!("{}:/usr/bin:/bin", self.place.path("bin").display());
        shell.args(["--default-signal=HUP,INT,QUIT,TERM", "sh", "-c", &here]).current_dir(repository());
        shell.env("PATH", path).env("KUBECONFIG", self.place.path("kubeconfig")).stdin(std::process::Stdio::null());
        shell
    }

    /// Runs a command to its end, which has to be a success, and returns its output.
    fn run(&self, command: &str) -> String {
        let ended = end_of(self.shell(command));
        assert_eq!(ended.code, Some(0), "{command}: {}{}", ended.stdout, ended.stderr);
        ended.stdout
    }
}

/// The tests are built beside others, which may turn on features that no user has.
#[test]
fn what_the_guides_run_has_the_features_that_are_published() {
    let version: Value = serde_json::from_str(&Machine::new().run("leaderelect version -o json")).unwrap();
    let manifest = guide("cli/Cargo.toml");
    let default = manifest.split_once("\ndefault = ").and_then(|(_, rest)| rest.lines().next()).unwrap();
    let default: Value = serde_json::from_str(default).unwrap();
    assert_eq!(version["features"], default);
    let published = default.as_array().unwrap();
    let names = |feature: &str| published.iter().any(|published| published == feature);
    let wanted = guide(".ci/binaries");
    let wanted = wanted.lines().find_map(|line| line.strip_prefix("for feature in ")?.strip_suffix("; do"));
    assert!(wanted.expect("the features of a download").split(' ').all(names), "{wanted:?}: {published:?}");
    for builds in [".ci/binaries", ".ci/footprint", "deploy/Containerfile"] {
        let text = guide(builds);
        let mut builds = text.lines().filter(|line| line.contains("cargo build")).peekable();
        assert!(builds.peek().is_some() && builds.all(|line| !line.contains("feature")), "{text}");
    }
    let schemes = [("s3://", "s3"), ("gs://", "gcs"), ("az://", "azure"), ("lease://", "kubernetes")];
    for page in [
        "README.md",
        "cli/README.md",
        "deploy/README.md",
        "docs/any-language.md",
        "docs/recipes.md",
        "docs/from-client-go.md",
        "docs/from-kube-leader-election.md",
        "docs/from-kubert.md",
        "docs/migrating.md",
    ] {
        for (scheme, feature) in schemes.iter().filter(|(scheme, _)| guide(page).contains(scheme)) {
            assert!(names(feature), "{page} has {scheme} URLs, which need the feature {feature}");
        }
    }
}

#[test]
fn the_move_from_a_lease_to_a_bucket_works_as_it_is_written() {
    let text = guide("docs/migrating.md");
    let (_, section) = text.split_once("\n## From a Lease to a bucket\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let machine = Machine::new();
    let (mut replicas, mut answers) = (Vec::new(), Vec::new());
    for command in commands(section) {
        if command.starts_with("leaderelect run") {
            let mut replica = Running::of(machine.shell(&format!("exec {command}")));
            replica.wait_for_line("working");
            replicas.push(replica);
            continue;
        }
        let output = machine.run(&command);
        if command.starts_with("leaderelect status") {
            let answer: Value = serde_json::from_str(&output).unwrap();
            answers.push((answer["holder"].clone(), answer["fencingToken"].clone()));
        }
    }
    assert_eq!(replicas.len(), 1, "the guide starts a replica that holds both locks");
    assert!(answers.len() == 2 && answers[0] == answers[1] && answers[0].0.is_string(), "{answers:?}");

    // The role that step 1 applies is for the lock and the service account of this guide.
    let asked = fs::read_to_string(machine.asked()).unwrap();
    let (_, role) = asked.split_once("kubectl apply").unwrap();
    let role = role.split_once("\nkubectl").map_or(role, |(role, _)| role);
    assert!(role.contains("namespace: default") && role.contains(r#"resourceNames: ["worker"]"#), "{role}");
    assert!(!role.contains("NAMESPACE") && !role.contains("SERVICE-ACCOUNT"), "{role}");

    for replica in replicas {
        replica.signal(Signal::TERM);
        assert_eq!(replica.end().code, Some(143), "as the command, which SIGTERM ended");
    }
}

#[test]
fn the_drill_of_several_regions_runs_as_it_is_written() {
    let text = guide("docs/regions.md");
    let (_, section) = text.split_once("\n## A drill\n").unwrap();
    let machine = Machine::new();
    let here = |command: &str| command.replace("/tmp/drill", machine.place.path("drill").to_str().unwrap());
    let (mut replica, mut agreed) = (None::<Running>, Vec::new());
    for command in commands(section) {
        if command.starts_with("leaderelect run") {
            let mut started = Running::of(machine.shell(&format!("exec {}", here(&command))));
            started.wait_for_line("working");
            replica = Some(started);
            continue;
        }
        if command.starts_with("rm ") {
            // Nobody leads by one part of three.
            replica.as_mut().unwrap().wait_for_note("leadership is lost");
        }
        let mut output = machine.run(&here(&command));
        if let Some((_, lost)) = command.split_once(" touch /tmp/") {
            // The candidate may have created the directory again in between.
            while fs::write(machine.place.path(lost), "").is_err() {
                let _ = fs::remove_dir_all(machine.place.path(lost));
            }
        }
        if command.starts_with("leaderelect status") {
            let waits = Instant::now();
            // The leader writes a part that it has not read with a later renewal.
            while agreed.is_empty() && output.matches(" agrees").count() < 3 {
                assert!(waits.elapsed() < PATIENCE, "{output}");
                output = machine.run(&here(&command));
            }
            agreed.push(output.matches(" agrees").count());
        }
    }
    assert_eq!(agreed, [3, 2]);
    let mut replica = replica.expect("the drill starts a candidate");
    replica.wait_for_line("working");
    replica.signal(Signal::TERM);
    assert_eq!(replica.end().code, Some(143), "as the command, which SIGTERM ended");
}

#[test]
fn the_commands_of_the_pages_run_as_they_are_written() {
    let machine = Machine::new();
    machine.install("backup.sh", "echo backed up");
    let mut ran = 0;
    for page in ["README.md", "deploy/README.md", "docs/run.md", "docs/jobs.md", "docs/locks.md"] {
        for command in commands(&guide(page)) {
            match reason_to_leave_out(&command) {
                Some(reason) => println!("{page}: not run, {reason}: {command}"),
                None => {
                    let output = machine.run(&command.replace("./backup.sh", "backup.sh"));
                    assert!(
                        !command.starts_with("leaderelect run") || output.contains("backed up"),
                        "{command}: {output}"
                    );
                    ran += 1;
                }
            }
        }
    }
    assert!(ran >= 4, "{ran} commands");
}

/// What the pages show of two terminals, typed and compared by a program that needs no Rust.
#[test]
fn the_sessions_of_the_pages_show_what_appears() {
    let program = std::env::var_os("LEADERELECTION_TEST_PROGRAM").unwrap_or_else(|| PROGRAM.into());
    let mut sessions = Command::new(repository().join("docs/check/sessions"));
    sessions.env("LEADERELECTION_TEST_PROGRAM", program);
    let ended = end_of(sessions);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
}
