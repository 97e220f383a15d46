//! The recipes for backups and replicas, with the real programs, after a host that was killed at work.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

use rustix::process::Signal;

use super::{Host, Machines, recipe, repository};
use crate::support::{Running, wait_until};

/// The folders of programs, with those that Debian has.
static PATH: LazyLock<String> = LazyLock::new(|| {
    let unpacked = Command::new(repository().join("cli/tests/recipes/debian")).output().unwrap();
    let folder = String::from_utf8(unpacked.stdout).unwrap();
    if folder.is_empty() {
        println!("no programs of Debian: {}", String::from_utf8_lossy(&unpacked.stderr));
    }
    format!("{}:{}", std::env::var("PATH").unwrap(), folder.trim())
});

/// A backup tool, its repository, and a backup of a host that is killed.
struct Tool {
    name: &'static str,
    init: &'static [&'static str],
    /// Works until its input ends, and has the repository's lock meanwhile.
    backup: &'static [&'static str],
    list: &'static [&'static str],
}

const RESTIC: Tool = Tool { name: "restic", init: &["init"], backup: &["backup", "--stdin"], list: &["snapshots"] };
const BORG: Tool =
    Tool { name: "borg", init: &["init", "-e", "none"], backup: &["create", "::dead", "-"], list: &["list"] };
/// An absolute path in the place of the test.
const REPOSITORY: &str = "{place}/repository";
const KOPIA: Tool = Tool {
    name: "kopia",
    init: &["repository", "create", "filesystem", "--path", REPOSITORY],
    backup: &["snapshot", "create", "--stdin-file", "dead", "."],
    list: &["snapshot", "list"],
};

impl Tool {
    /// Returns `true` if the program is installed or unpacked.
    fn is_there(&self, place: &Path) -> bool {
        self.command(&["--version"], place).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    }

    /// With a repository in the test's place.
    fn at(command: &mut Command, place: &Path) {
        command.env("PATH", PATH.as_str());
        let repository = place.join("repository");
        command
            .current_dir(place)
            .env("HOME", place)
            .env("RESTIC_REPOSITORY", &repository)
            .env("BORG_REPO", repository);
        command.env("RESTIC_PASSWORD", "test").env("KOPIA_PASSWORD", "test").env("KOPIA_CHECK_FOR_UPDATES", "false");
    }

    fn command(&self, arguments: &[&str], place: &Path) -> Command {
        let mut command = Command::new(self.name);
        Self::at(&mut command, place);
        command.args(arguments.iter().map(|argument| argument.replace("{place}", &place.display().to_string())));
        command
    }

    fn output(&self, arguments: &[&str], place: &Path) -> String {
        let output = self.command(arguments, place).output().unwrap();
        assert!(output.status.success(), "{}: {output:?}", self.name);
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Runs the recipe of a tool on the next host.
fn follows_a_host_that_was_killed(tool: &Tool, has_lock: impl Fn(&Path) -> bool) {
    let machines = Machines::new();
    let place = machines.place.path("");
    if !tool.is_there(&place) {
        return println!("skipped: {} is not installed, and cli/tests/recipes/debian unpacks none", tool.name);
    }
    let data = machines.place.path("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("file"), "data").unwrap();
    tool.output(tool.init, &place);
    let mut backup = tool.command(tool.backup, &place);
    // borg knows dead processes of its own host.
    let mut backup: Child = backup.env("BORG_HOST_ID", "another").stdin(Stdio::piped()).spawn().unwrap();
    wait_until("the backup has begun", || has_lock(&place));
    backup.kill().unwrap();
    backup.wait().unwrap();

    let mut command = recipe(&machines, tool.name);
    Tool::at(&mut command, &place);
    let ended = Running::of(command).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let listed = tool.output(tool.list, &place);
    assert!(listed.lines().any(|line| line.contains("data") || line.contains("-20")), "{listed}");
    assert!(tool.name == "kopia" || !has_lock(&place), "the lock of the dead host is gone");
}

#[test]
fn restic_backs_up_after_a_host_that_was_killed() {
    follows_a_host_that_was_killed(&RESTIC, |place| {
        let mut names =
            fs::read_dir(place.join("repository/locks")).into_iter().flatten().map(|lock| lock.unwrap().file_name());
        // While it is written, it has a longer name.
        names.any(|name| name.len() == 64)
    });
}

#[test]
fn borg_backs_up_after_a_host_that_was_killed() {
    follows_a_host_that_was_killed(&BORG, |place| place.join("repository/lock.exclusive").exists());
}

#[test]
fn kopia_backs_up_after_a_host_that_was_killed() {
    follows_a_host_that_was_killed(&KOPIA, |_| true);
}

#[test]
fn litestream_continues_on_the_next_host_with_what_was_replicated() {
    let machines = Machines::new();
    let page = fs::read_to_string(repository().join("docs/recipes.md")).unwrap();
    let script = page.split_once("```sh\n").and_then(|(_, rest)| rest.split_once("```")).unwrap().0;
    let [one, two] = ["one", "two"].map(|name| {
        let host = Host::new(&machines, name);
        let script_file = host.folder().join("lead.sh");
        fs::write(&script_file, script).unwrap();
        fs::set_permissions(script_file, fs::Permissions::from_mode(0o755)).unwrap();
        let replica = machines.place.path("replica");
        let config = format!("dbs:\n  - path: app.db\n    replica: {{type: file, path: {}}}\n", replica.display());
        fs::write(host.folder().join("litestream.yml"), config).unwrap();
        host
    });
    // A database of before makes room.
    let older = "import sqlite3; sqlite3.connect('app.db').executescript('create table terms (host); insert into terms values (0), (0)')";
    let made = Command::new("python3").args(["-c", older]).current_dir(two.folder()).status().unwrap();
    assert!(made.success());
    let first = one.run("lead.sh");
    wait_until("the first host works", || machines.log() == "one 0\n");
    let snapshots = machines.place.path("replica/ltx/9");
    wait_until("its work is replicated", || fs::read_dir(&snapshots).is_ok_and(|mut files| files.next().is_some()));
    let mut second = two.run("lead.sh");
    second.wait_for_note("waiting: ");
    first.signal(Signal::TERM);
    assert_eq!(first.end().code, Some(0));
    wait_until("the second host works", || machines.log() == "one 0\ntwo 1\n");
    second.signal(Signal::TERM);
    assert_eq!(second.end().code, Some(0));
}
