//! A move from a Lease of Kubernetes to a local directory and back, by three replicas that are rolled one by one.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use leaderelection_integration_tests::servers::kube_api::KubeApi;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::support::{Ended, Lines, Place, Running, end, end_of, leaderelect};

const TIMINGS: [&str; 6] = ["--lease", "6s", "--renew", "4s", "--retry", "200ms"];
const LEASE: Duration = Duration::from_secs(6);

/// The longest delay of a process that starts while the machine is busy.
const BUSY: Duration = Duration::from_secs(60);

const LEASE_URL: &str = "lease://default/worker";

/// The log of the leaders. The file system orders the entries.
const WORK: &str = r#"while echo "$LEADERELECTION_FENCING_TOKEN $LEADERELECTION_IDENTITY $(date +%s%N)" >>"$0"
do sleep 0.05; done"#;

/// One entry of the log.
#[derive(Clone, Debug)]
struct Entry {
    number: usize,
    token: u64,
    writer: String,
    at: Duration,
}

/// The locks, the log, and the replicas.
struct Service {
    // Dropped first, so that nobody loses its locks before it ends.
    replicas: Vec<Running>,
    api: KubeApi,
    kubeconfig: NamedTempFile,
    log: PathBuf,
    place: Place,
    _runtime: tokio::runtime::Runtime,
}

impl Service {
    fn new() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let api = runtime.block_on(KubeApi::start());
        let kubeconfig = NamedTempFile::new().unwrap();
        fs::write(kubeconfig.path(), api.kubeconfig().to_string()).unwrap();
        let place = Place::new();
        let log = place.path("log");
        fs::write(&log, "").unwrap();
        Self { replicas: Vec::new(), api, kubeconfig, log, place, _runtime: runtime }
    }

    fn bucket(&self) -> String {
        self.place.lock("worker")
    }

    fn command(&self, locks: &[&str], identity: &str) -> Command {
        let work = ["--", "sh", "-c", WORK, self.log.to_str().unwrap()];
        let args = [&["-v", "run", "--campaign", "--identity", identity], locks, &TIMINGS, &work].concat();
        let mut command = leaderelect(args);
        command.env("KUBECONFIG", self.kubeconfig.path());
        command
    }

    /// Replaces the replicas one by one, each when the one before has read the locks and somebody leads. Then waits until one
    /// of the new replicas has led.
    fn roll(&mut self, phase: &str, locks: &[&str]) {
        for replica in 0..3 {
            if self.replicas.len() == 3 {
                let old = self.replicas.remove(0);
                old.signal(Signal::TERM);
                println!("{:?}", old.end());
            }
            let mut new = Running::of(self.command(locks, &format!("{phase}-{replica}")));
            // The first note comes after the first look at the locks.
            new.wait_for_note("leaderelect: ");
            self.replicas.push(new);
            if self.replicas.len() == 3 {
                let replaced = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
                self.wait_for_entry(|entry| entry.at > replaced);
            }
        }
        let begun = self.entries().len();
        self.wait_for_entry(|entry| entry.writer.starts_with(phase) && entry.number >= begun);
    }

    /// Waits for an entry of the log, from its first one on.
    fn wait_for_entry(&self, wanted: impl Fn(&Entry) -> bool) {
        let mut tail = Command::new("tail");
        tail.args(["-n", "+1", "-f"]).arg(&self.log).stdout(Stdio::piped());
        let mut tail = Kill(tail.spawn().unwrap());
        let mut lines = Lines::of(tail.0.stdout.take().unwrap());
        let number = Cell::new(0);
        let is_wanted = |line: &str| {
            let entry = entry(number.get(), line);
            number.set(entry.number + 1);
            wanted(&entry).then_some(())
        };
        lines.wait_for(is_wanted).expect("such an entry");
    }

    fn entries(&self) -> Vec<Entry> {
        read(&self.log)
    }
}

/// A process that is killed when dropped.
struct Kill(Child);

impl Drop for Kill {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn read(log: &Path) -> Vec<Entry> {
    let text = fs::read_to_string(log).unwrap();
    text.lines().enumerate().map(|(number, line)| entry(number, line)).collect()
}

fn entry(number: usize, line: &str) -> Entry {
    let fields: Vec<_> = line.split(' ').collect();
    let [token, writer, at] = fields[..] else { panic!("{line:?} is no entry") };
    let at = Duration::from_nanos(at.parse().unwrap());
    Entry { number, token: token.parse().unwrap(), writer: writer.to_owned(), at }
}

/// Judges the log: tokens never go back, no two writers have one token, and somebody leads again after each step.
/// The exact bound of a gap is asked of the model, whose clock a busy machine does not disturb.
fn judge(entries: &[Entry]) {
    for pair in entries.windows(2) {
        let [before, after] = pair else { unreachable!() };
        assert!(after.token >= before.token, "a token went back: {before:?}, {after:?}");
        assert!(after.token > before.token || after.writer == before.writer, "two led at once: {before:?}, {after:?}");
        let gap = after.at.saturating_sub(before.at);
        assert!(gap <= LEASE + BUSY, "a gap of {gap:?}: {before:?}, {after:?}");
    }
}

fn status(service: &Service, url: &str) -> Value {
    let mut command = leaderelect(["status", "-o", "json", url]);
    command.env("KUBECONFIG", service.kubeconfig.path());
    let Ended { stdout, stderr, .. } = end_of(command);
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"))
}

#[test]
fn three_replicas_move_from_a_lease_to_a_bucket_and_back() {
    let mut service = Service::new();
    // Whatever led before on the Lease has left its count.
    service.api.plant(
        "worker",
        serde_json::json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "worker", "namespace": "default"},
            "spec": {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 41},
        }),
    );
    let bucket = service.bucket();
    let old = ["--lock", LEASE_URL];
    let both = ["--lock", &bucket, "--also", LEASE_URL];
    let new = ["--lock", &bucket];
    service.roll("old", &old);
    service.roll("both", &both);
    // What an operator looks at before the next rollout: one leader, who holds both.
    let [lease, record] = [LEASE_URL, &bucket].map(|url| status(&service, url));
    assert_eq!((&lease["holder"], &lease["fencingToken"]), (&record["holder"], &record["fencingToken"]), "{lease}");
    // A crash costs one lease.
    let leader = lease["holder"].as_str().unwrap().strip_prefix("both-").unwrap().parse::<usize>().unwrap();
    let crashed = service.replicas.remove(leader);
    crashed.signal(Signal::KILL);
    crashed.end();
    // The others take over, and not only a replica that starts later.
    let last = service.entries().last().unwrap().token;
    service.wait_for_entry(|entry| entry.token > last);
    let again = Running::of(service.command(&both, "both-again"));
    service.replicas.insert(leader, again);
    service.roll("new", &new);
    let there = service.entries().len();
    service.roll("both", &both);
    service.roll("old", &old);
    let entries = service.entries();
    judge(&entries);
    assert!(entries[0].token == 42 && entries.len() > there, "{:?}", entries[0]);
    let phases = ["old-", "both-", "new-"].map(|phase| entries.iter().any(|entry| entry.writer.starts_with(phase)));
    assert_eq!(phases, [true; 3]);
}

#[test]
fn the_old_lock_is_not_the_new_one() {
    let place = Place::new();
    let lock = place.lock("a");
    let ended = end(&["run", "--lock", &lock, "--also", &lock, "--", "true"]);
    assert_eq!(ended.code, Some(64), "{ended:?}");
    assert!(ended.stderr.contains("--also names the lock of --lock"), "{ended:?}");

    let spelt_twice = ["run", "--lock", "s3://bucket/a", "--also", "s3://bucket/a?region=eu-central-1", "--", "true"];
    let mut command = leaderelect(spelt_twice);
    command.env("AWS_REGION", "eu-central-1");
    let ended = end_of(command);
    assert_eq!(ended.code, Some(64), "{ended:?}");
}
