//! The electors of others, as programs: those of the comparison, which keep the contract of `comparison/README.md`. The Python
//! client is installed by the test. `LEADERELECTION_TEST_DRIVERS` names the folder that `comparison/build-drivers` has filled
//! with all others; a test whose program is not there says that it was skipped.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::serve::process::eventually;
use crate::support::Place;

const DRIVERS_VARIABLE: &str = "LEADERELECTION_TEST_DRIVERS";

/// The timings: a lease of several seconds, which a busy machine does not lose.
const TIMINGS: [&str; 8] = ["--lease-ms", "8000", "--renew-ms", "6000", "--retry-ms", "1000", "--work-ms", "50"];

/// An elector of others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Driver {
    /// The name in the table of `docs/any-language.md`.
    pub(super) name: &'static str,
    /// The number of requests that a leader sends for each renewal.
    pub(super) requests: usize,
    /// The Lease has the identity of the candidate. controller-runtime and the Collector make one.
    pub(super) names_holder: bool,
    /// The Lease has to exist.
    pub(super) needs_lease: bool,
    program: fn() -> Option<Command>,
}

const fn driver(name: &'static str, requests: usize, program: fn() -> Option<Command>) -> Driver {
    Driver { name, requests, names_holder: true, needs_lease: false, program }
}

pub(super) const CLIENT_GO: Driver = driver("client-go", 1, || file("go/client-go-lease").map(Command::new));
pub(super) const CONTROLLER_RUNTIME: Driver = Driver {
    names_holder: false,
    ..driver("controller-runtime", 1, || file("go/controller-runtime").map(Command::new))
};
pub(super) const COLLECTOR: Driver =
    Driver { names_holder: false, ..driver("the OpenTelemetry Collector", 1, collector) };
pub(super) const FABRIC8: Driver = driver("fabric8", 2, || java("comparison.Fabric8"));
pub(super) const JAVA: Driver = driver("Java, official", 2, || java("comparison.Official"));
pub(super) const KUBE_LEADER_ELECTION: Driver =
    driver("kube-leader-election", 2, || file("rust/debug/comparison-kube-leader-election").map(Command::new));
pub(super) const KUBERT: Driver =
    Driver { needs_lease: true, ..driver("kubert", 1, || file("rust/debug/comparison-kubert").map(Command::new)) };
pub(super) const PYTHON: Driver = driver("Python", 2, python);

/// A file of the folder of drivers.
pub(super) fn file(path: &str) -> Option<PathBuf> {
    let folder: OsString = std::env::var_os(DRIVERS_VARIABLE)?;
    Some(Path::new(&folder).join(path)).filter(|path| path.exists())
}

/// A program of the folder. Returns `None`, and says so, if it is not there.
pub(crate) fn program(path: &str, elector: &str) -> Option<PathBuf> {
    file(path).or_else(|| {
        skip(elector);
        None
    })
}

fn skip(elector: &str) {
    println!("skipped: {DRIVERS_VARIABLE} names no folder with {elector}, see comparison/build-drivers");
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// The extension of the Collector, with the settings of the recipe.
fn collector() -> Option<Command> {
    let recipes = fs::read_to_string(repository().join("docs/recipes.md")).unwrap();
    let (_, block) = recipes.split_once("```yaml\nextensions:\n").unwrap();
    let (settings, _) = block.split_once("```").unwrap();
    let mut command = Command::new(file("go/collector")?);
    command.env("COLLECTOR_CONFIG", format!("extensions:\n{settings}"));
    Some(command)
}

pub(super) fn java(class: &str) -> Option<Command> {
    let classes = file("java/classes")?;
    let path = format!("{}:{}/*", classes.display(), classes.with_file_name("dependency").display());
    let mut command = Command::new("java");
    command.args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp", &path, class]);
    Some(command)
}

fn python() -> Option<Command> {
    let drivers = repository().join("comparison/drivers/python");
    let packages =
        Command::new(repository().join(".ci/python-packages")).arg(drivers.join("requirements.txt")).output();
    let packages = packages.unwrap();
    assert!(packages.status.success(), "{}", String::from_utf8_lossy(&packages.stderr));
    let mut command = Command::new("python3");
    command.arg(drivers.join("candidate.py"));
    command.env("PYTHONPATH", String::from_utf8(packages.stdout).unwrap().trim());
    Some(command)
}

/// A candidate, which ends with this test.
pub(super) struct Candidate {
    pub(super) name: String,
    process: Child,
}

impl Candidate {
    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An entry of the log of the work.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The monotonic clock of the machine, in nanoseconds.
    pub(super) at: u64,
    pub(super) worker: String,
}

/// Candidates of one kind for one Lease, and their log.
pub(super) struct Fleet {
    pub(super) place: Place,
    pub(super) driver: Driver,
    pub(super) lock: String,
}

impl Fleet {
    /// Returns `None`, and says so, if there is no such program.
    pub(super) fn of(driver: Driver, lock: &str) -> Option<Self> {
        if (driver.program)().is_none() {
            skip(driver.name);
            return None;
        }
        Some(Self { place: Place::new(), driver, lock: lock.to_owned() })
    }

    /// Starts a candidate that knows nothing but the address of its server.
    pub(super) fn start(&self, name: &str, url: &str) -> Candidate {
        let kubeconfig = self.place.path(&format!("kubeconfig-{name}"));
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a, \
             namespace: default}}}}]\nusers: [{{name: a, user: {{}}}}]\nclusters: [{{name: a, cluster: {{server: \"{url}\"}}}}]\n"
        );
        fs::write(&kubeconfig, text).unwrap();
        self.start_with(name, &kubeconfig)
    }

    pub(super) fn start_with(&self, name: &str, kubeconfig: &Path) -> Candidate {
        let mut command = (self.driver.program)().unwrap();
        command.args(["--lock", &self.lock, "--identity", name, "--log", self.place.path("log").to_str().unwrap()]);
        command.args(TIMINGS).env("KUBECONFIG", kubeconfig).stdin(Stdio::piped());
        Candidate { name: name.to_owned(), process: command.spawn().unwrap() }
    }

    /// The work in the order of the log.
    pub(super) fn work(&self) -> Vec<Entry> {
        let log = fs::read_to_string(self.place.path("log")).unwrap_or_default();
        let entries = log.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let work = entries.filter(|entry| matches!(entry[..], [_, _, _, "start" | "work"]));
        work.map(|entry| Entry { at: entry[0].parse().unwrap(), worker: entry[1].to_owned() }).collect()
    }

    /// The workers, each once for all its work until the next one's.
    pub(super) fn turns(&self) -> Vec<String> {
        let mut workers: Vec<_> = self.work().into_iter().map(|entry| entry.worker).collect();
        workers.dedup();
        workers
    }

    /// Waits until one of these works from now on, and returns it.
    pub(super) async fn works(&self, names: &[&str]) -> String {
        let behind = self.work().len();
        let found = || self.work().into_iter().skip(behind).find(|entry| names.contains(&&*entry.worker));
        eventually(&format!("one of {names:?} works"), async || found()).await.worker
    }
}
