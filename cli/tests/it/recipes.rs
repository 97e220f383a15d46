//! The recipes of docs/jobs.md and docs/recipes.md, and the units of deploy/, run as cron and systemd run them.

mod backups;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use leaderelection_integration_tests::servers::kube_api::KubeApi;
use rustix::process::Signal;

use crate::notify::Systemd;
use crate::support::{PROGRAM, Place, Running, end, wait_until};

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// The fenced blocks of a language under a heading of the guide.
fn blocks(heading: &str, language: &str) -> Vec<String> {
    let guide = fs::read_to_string(repository().join("docs/jobs.md")).unwrap();
    let (_, section) = guide.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    let fence = format!("\n```{language}\n");
    let blocks = section.split(&fence).skip(1);
    blocks.map(|block| block.split_once("\n```").unwrap().0.to_owned()).collect()
}

/// The assignments of a crontab or an environment file.
fn assignments(text: &str) -> Vec<(String, String)> {
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let pairs = text.lines().filter_map(|line| line.split_once('=').filter(|(name, _)| is_name(name)));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A machine with `leaderelect` and the programs of the recipes, which write a line into one log.
struct Machines {
    place: Place,
    programs: PathBuf,
}

impl Machines {
    fn new() -> Self {
        let place = Place::new();
        let programs = place.path("bin");
        fs::create_dir(&programs).unwrap();
        std::os::unix::fs::symlink(PROGRAM, programs.join("leaderelect")).unwrap();
        Self { place, programs }
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.programs.join(name);
        let log = self.place.path("log");
        fs::write(&path, format!("#!/bin/sh\nlog={}\n{script}\n", log.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn log(&self) -> String {
        fs::read_to_string(self.place.path("log")).unwrap_or_default()
    }

    /// The environment of the text, with the paths and the lock of this test.
    fn environment(&self, text: &str) -> Vec<(String, String)> {
        let lock = self.place.lock("recipe");
        let adapt = |(name, value): (String, String)| {
            let value = match name.as_str() {
                "PATH" => format!("{}:{value}", self.programs.display()),
                "LEADERELECT_LOCK" => {
                    assert!(value.starts_with("s3://"), "{value}");
                    lock.clone()
                }
                _ => self.here(&value),
            };
            (name, value)
        };
        let environment: Vec<_> = assignments(text).into_iter().map(adapt).collect();
        assert!(environment.iter().any(|(name, _)| name == "LEADERELECT_LOCK"), "{text}");
        environment
    }

    /// The text with this test's place for programs.
    fn here(&self, text: &str) -> String {
        text.replace("/usr/local/bin/", &format!("{}/", self.programs.display()))
    }

    /// The jobs of a crontab, each as cron starts it: in a bare environment.
    fn jobs(&self, crontab: &str) -> Vec<Command> {
        let is_job = |line: &&str| line.starts_with(|c: char| c.is_ascii_digit() || c == '*');
        let job = |line: &str| {
            let command = line.split_whitespace().skip(5).collect::<Vec<_>>().join(" ");
            // An unescaped one ends the command, and begins its standard input.
            assert!(!command.replace("\\%", "").contains('%'), "{command}");
            let home = self.place.path("");
            let mut shell = bare(&[("HOME", home.to_str().unwrap()), ("SHELL", "/bin/sh"), ("PATH", "/usr/bin:/bin")]);
            shell.args(self.environment(crontab).iter().map(|(name, value)| format!("{name}={value}")));
            shell.args(["/bin/sh", "-c", &command.replace("\\%", "%")]);
            shell
        };
        crontab.lines().filter(is_job).map(job).collect()
    }

    /// The command of a unit, as systemd starts it with an environment file.
    fn unit(&self, name: &str, file: &str, more: &[(&str, &str)]) -> Command {
        let unit = fs::read_to_string(repository().join("deploy/systemd").join(name)).unwrap();
        let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
        let environment = self.environment(file);
        let words = words(&self.here(line)).into_iter().flat_map(|word| {
            let variable = environment.iter().find(|(name, _)| word.strip_prefix('$') == Some(name));
            match variable {
                // A word of its own is split at spaces.
                Some((_, value)) => value.split(' ').map(str::to_owned).collect(),
                None => vec![word.replace("$$", "$").replace("%%", "%")],
            }
        });
        let words: Vec<_> = words.collect();
        let mut command = bare(more);
        command.args(["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"]);
        command.args(environment.iter().map(|(name, value)| format!("{name}={value}"))).args(words);
        command
    }
}

fn bare(variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP,INT,QUIT,TERM").arg("-i");
    command.args(variables.iter().map(|(name, value)| format!("{name}={value}")));
    command
}

/// The words of a line, of which one in single quotes is one.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    parts
        .flat_map(|(index, part)| match index % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

fn crontabs() -> [String; 2] {
    blocks("A crontab on every host", "crontab").try_into().unwrap()
}

/// Two hosts, to their ends.
fn both(command: impl Fn() -> Command) -> [(Option<i32>, String); 2] {
    let hosts = [Running::of(command()), Running::of(command())];
    hosts.map(|host| {
        let ended = host.end();
        (ended.code, ended.stdout + &ended.stderr)
    })
}

#[test]
fn cron_runs_the_nightly_job_on_one_of_two_hosts_and_writes_no_mail() {
    let machines = Machines::new();
    let [nightly, _] = crontabs();
    machines.program("nightly-report", "echo ran >>$log; sleep 0.2");
    let job = || machines.jobs(&nightly).remove(0);
    assert_eq!(both(job), [(Some(0), String::new()), (Some(0), String::new())]);
    assert_eq!(machines.log(), "ran\n");
}

#[test]
fn cron_runs_the_example_of_the_help_on_one_of_two_hosts() {
    let machines = Machines::new();
    let help = end(&["run", "--help"]).stdout;
    let crontab: Vec<_> = help.lines().map(str::trim).skip_while(|line| !line.contains("crontab")).take(3).collect();
    machines.program("nightly", "echo ran >>$log; sleep 0.2");
    let job = || machines.jobs(&format!("PATH=/usr/bin:/bin\n{}", crontab.join("\n"))).remove(0);
    assert_eq!(both(job).map(|(code, _)| code), [Some(0), Some(0)]);
    assert_eq!(machines.log(), "ran\n");
}

#[test]
fn cron_runs_a_job_that_failed_on_the_next_host_and_the_mail_says_why() {
    let machines = Machines::new();
    let [nightly, _] = crontabs();
    machines.program("nightly-report", "test -e $log && exit; echo ran >$log; echo no report today >&2; exit 3");
    let job = || machines.jobs(&nightly).remove(0);
    let mut ends = both(job);
    ends.sort();
    let [(done, quiet), (failed, mail)] = ends;
    assert_eq!((done, quiet.as_str(), failed), (Some(0), "", Some(3)));
    let (said, why) = mail.split_once('\n').unwrap();
    assert_eq!(said, "no report today");
    assert!(why.contains("failed: the command ended with exit code 3"), "{why}");
}

#[test]
fn cron_leaves_a_job_out_that_still_runs_elsewhere_and_says_nothing() {
    let machines = Machines::new();
    let [_, sync] = crontabs();
    machines.program("sync-files", "echo up; exec sleep 1000");
    let mut first = Running::of(machines.jobs(&sync).remove(0));
    first.wait_for("up");
    // The recipe's patience is for a holder that is dead, and this one is known to live.
    let mut impatient = Command::new("env");
    let job = machines.jobs(&sync).remove(0);
    let args = job.get_args().map(|arg| arg.to_str().unwrap().to_owned());
    impatient.args(args.map(|arg| arg.replace("--wait-timeout 30s", "--wait-timeout 6s")));
    let second = Running::of(impatient).end();
    assert_eq!((second.code, second.stdout + &second.stderr), (Some(0), String::new()));
}

/// The environment file in the first comment of a unit.
fn file_of(unit: &str) -> String {
    let unit = fs::read_to_string(repository().join("deploy/systemd").join(unit)).unwrap();
    unit.lines().filter_map(|line| line.strip_prefix("#   ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_timer_s_service_runs_the_job_on_one_of_two_machines() {
    let machines = Machines::new();
    machines.program("nightly-report", "echo ran $1 >>$log; sleep 0.2");
    let ends = both(|| machines.unit("leaderelect-job@.service", &file_of("leaderelect-job@.service"), &[]));
    assert_eq!(ends.map(|(code, _)| code), [Some(0), Some(0)]);
    assert_eq!(machines.log(), "ran --yesterday\n");
}

#[test]
fn the_service_is_ready_when_it_competes_and_stops_gracefully() {
    let machines = Machines::new();
    machines.program(
        "worker",
        "trap 'echo stopped >>$log; trap - TERM; kill $$' TERM; echo up; while :; do sleep 0.02; done",
    );
    let unit = fs::read_to_string(repository().join("deploy/systemd/leaderelect-run@.service")).unwrap();
    let socket = machines.place.path("notify");
    let systemd = Systemd::at(&machines.place);
    let mut service = Running::of(machines.unit(
        "leaderelect-run@.service",
        &file_of("leaderelect-run@.service"),
        &[("NOTIFY_SOCKET", socket.to_str().unwrap()), ("WATCHDOG_USEC", "30000000")],
    ));
    systemd.receive_until("READY=1");
    service.wait_for("up");
    service.signal(Signal::TERM);
    let code = service.end().code.unwrap().to_string();
    let success = unit.lines().find_map(|line| line.strip_prefix("SuccessExitStatus=")).unwrap();
    assert_eq!((code.as_str(), machines.log().as_str()), (success, "stopped\n"));
    for setting in ["KillMode=mixed", "Type=notify", "WatchdogSec=30s"] {
        assert!(unit.lines().any(|line| line == setting), "{setting}");
    }
}

/// The recipe of `docs/recipes.md` for a tool, with a lock of this machine.
fn recipe(machines: &Machines, tool: &str) -> Command {
    let page = fs::read_to_string(repository().join("docs/recipes.md")).unwrap();
    let line = page
        .lines()
        .find_map(|line| line.split_once("| `leaderelect ")?.1.strip_suffix("` |").filter(|line| line.contains(tool)));
    let data = machines.place.path("data");
    let here =
        line.unwrap().replace("s3://bucket/", &machines.place.prefix()).replace("/srv/data", data.to_str().unwrap());
    let mut command = crate::support::leaderelect(words(&here));
    let path = format!("{}:{}", machines.programs.display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).current_dir(machines.place.path(""));
    command
}

/// A host with Celery and kopf, and the folder in which it runs a recipe.
struct Host<'a> {
    machines: &'a Machines,
    packages: PathBuf,
    name: &'a str,
}

impl<'a> Host<'a> {
    fn new(machines: &'a Machines, name: &'a str) -> Self {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes/python");
        let packages =
            Command::new(repository().join(".ci/python-packages")).arg(sources.join("requirements.txt")).output();
        let packages = packages.unwrap();
        assert!(packages.status.success(), "{}", String::from_utf8_lossy(&packages.stderr));
        let host = Self { machines, packages: String::from_utf8(packages.stdout).unwrap().trim().into(), name };
        fs::create_dir(host.folder()).unwrap();
        for source in ["tasks.py", "operator.py", "app", "server"] {
            fs::copy(sources.join(source), host.folder().join(source)).unwrap();
        }
        host
    }

    fn folder(&self) -> PathBuf {
        self.machines.place.path(self.name)
    }

    fn run(&self, tool: &str) -> Running {
        let mut command = recipe(self.machines, tool);
        let path = format!("{}/bin:{}", self.packages.display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("PYTHONPATH", &self.packages).current_dir(self.folder());
        command.env("OPERATOR_LOG", self.machines.place.path("log")).env("LEADERELECT_IDENTITY", self.name);
        command.env("KUBECONFIG", self.machines.place.path("kubeconfig"));
        Running::of(command)
    }

    /// The messages that its beat has sent.
    fn messages(&self) -> usize {
        let files = fs::read_dir(self.folder()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        files.filter(|name| name.ends_with(".celery.msg")).count()
    }
}

#[test]
fn celery_beats_on_one_of_two_hosts() {
    let machines = Machines::new();
    let [one, two] = ["one", "two"].map(|name| Host::new(&machines, name));
    let first = one.run("celery");
    wait_until("the first host beats", || one.messages() > 0);
    let mut second = two.run("celery");
    second.wait_for_note("waiting: ");
    first.signal(Signal::TERM);
    wait_until("the second host beats", || two.messages() > 0);
    let sent = one.messages();
    wait_until("the second host beats on", || two.messages() > 3);
    assert_eq!(one.messages(), sent, "the first host has ended before");
    assert_eq!(first.end().code, Some(0));
}

#[test]
fn kopf_operates_on_one_of_two_hosts() {
    let machines = Machines::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let api = runtime.block_on(KubeApi::start());
    fs::write(machines.place.path("kubeconfig"), api.kubeconfig().to_string()).unwrap();
    let [one, two] = ["one", "two"].map(|name| Host::new(&machines, name));
    let first = one.run("kopf");
    wait_until("the first host operates", || machines.log() == "one works\n");
    let mut second = two.run("kopf");
    second.wait_for_note("waiting: ");
    first.signal(Signal::TERM);
    wait_until("the second host operates", || machines.log().contains("two works"));
    assert_eq!(machines.log(), "one works\none has ended\ntwo works\n");
}

#[test]
fn slatedb_is_open_on_one_of_two_hosts() {
    let machines = Machines::new();
    let [one, two] = ["one", "two"].map(|name| Host::new(&machines, name));
    let first = one.run("./server");
    wait_until("the first host has opened the database", || machines.log() == "one opened\n");
    let mut second = two.run("./server");
    second.wait_for_note("waiting: ");
    first.signal(Signal::TERM);
    wait_until("the second host has opened it", || machines.log().contains("two opened"));
    assert_eq!(machines.log(), "one opened\none closed\ntwo opened\n");
    assert_eq!(first.end().code, Some(0));
}

#[test]
fn terraform_applies_on_two_hosts_in_turn() {
    let machines = Machines::new();
    let folder = machines.place.path("");
    fs::write(folder.join("main.tf"), "resource \"terraform_data\" \"network\" { input = 1 }\n").unwrap();
    let Ok(init) = Command::new("terraform").arg("init").current_dir(&folder).output() else {
        return println!("skipped: terraform is not installed");
    };
    assert!(init.status.success(), "{init:?}");
    let ends = both(|| recipe(&machines, "terraform"));
    assert_eq!(ends.each_ref().map(|(code, _)| *code), [Some(0); 2], "{ends:?}");
    // Without the lock, one of them would have been refused the state, or both would have added the resource.
    let added = |said: &str| said.contains("1 added");
    assert_eq!(ends.iter().filter(|(_, said)| added(said)).count(), 1, "{ends:?}");
}
