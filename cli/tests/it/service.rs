//! A service of three replicas that are rolled one by one, and the log of what its leaders did.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;

use crate::support::{Lines, Place, Running, leaderelect, wait_until};

const TIMINGS: [&str; 6] = ["--lease-duration", "6s", "--renew-deadline", "4s", "--retry-period", "200ms"];
pub(crate) const LEASE: Duration = Duration::from_secs(6);

const REPLICAS: usize = 3;

/// The longest delay of a process that starts while the machine is busy.
const BUSY: Duration = Duration::from_secs(60);

/// The log of the leaders. The file system orders the entries.
const WORK: &str = r#"while echo "$LEADERELECTION_FENCING_TOKEN $LEADERELECTION_IDENTITY $(date +%s%N)" >>"$0"
do sleep 0.05; done"#;

/// One entry of the log.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    number: usize,
    pub(crate) token: u64,
    pub(crate) writer: String,
    pub(crate) at: Duration,
}

/// The log, and the replicas.
pub(crate) struct Service {
    // Dropped first, so that nobody loses its locks before it ends.
    replicas: Vec<Replica>,
    log: PathBuf,
    pub(crate) place: Arc<Place>,
    environment: Vec<(&'static str, PathBuf)>,
    pub(crate) timings: [&'static str; 6],
}

struct Replica {
    identity: String,
    process: Running,
}

impl Service {
    pub(crate) fn new(environment: Vec<(&'static str, PathBuf)>) -> Self {
        let place = Arc::new(Place::new());
        let log = place.path("log");
        fs::write(&log, "").unwrap();
        Self { replicas: Vec::new(), log, place, environment, timings: TIMINGS }
    }

    pub(crate) fn start(&mut self, locks: &[&str], identity: String) {
        let work = ["--", "sh", "-c", WORK, self.log.to_str().unwrap()];
        let args = [&["-v", "run", "--campaign", "--identity", &identity], locks, &self.timings, &work].concat();
        let mut command = leaderelect(args);
        command.envs(self.environment.clone());
        let mut process = Running::of(command);
        // The first note comes after the first poll of the locks.
        process.wait_for_note("leaderelect: ");
        self.replicas.push(Replica { identity, process });
    }

    /// Replaces the replicas one by one, each when the one before has read the locks and somebody leads. `fault` comes when
    /// one of three is replaced. Then waits until one of the new replicas has led.
    pub(crate) fn roll(&mut self, phase: &str, locks: &[&str], fault: impl FnOnce(&mut Self)) {
        let (mut number, mut fault) = (0, Some(fault));
        loop {
            if self.replicas.len() == REPLICAS {
                let is_old = |replica: &Replica| !replica.identity.starts_with(phase);
                let Some(old) = self.replicas.iter().position(is_old) else { break };
                let old = self.replicas.remove(old).process;
                old.signal(Signal::TERM);
                println!("{:?}", old.end());
            }
            self.start(locks, format!("{phase}-{number}"));
            number += 1;
            if self.replicas.len() == REPLICAS {
                self.wait_for_leader(Duration::ZERO);
                fault.take().into_iter().for_each(|fault| fault(self));
            }
        }
        let begun = self.entries().len();
        self.wait_for_entry(|entry| entry.writer.starts_with(phase) && entry.number >= begun);
    }

    /// Waits until somebody leads who has renewed or taken the lease after this time.
    pub(crate) fn wait_for_leader(&self, after: Duration) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        self.wait_for_entry(|entry| entry.at > now + after);
    }

    /// Kills the replica that leads, and waits until another one does, and not only one that starts later.
    pub(crate) fn kill_leader(&mut self) {
        let last = self.entries().pop().unwrap();
        let leader = self.replicas.iter().position(|replica| replica.identity == last.writer).unwrap();
        let killed = self.replicas.remove(leader).process;
        killed.signal(Signal::KILL);
        killed.end();
        self.wait_for_entry(|entry| entry.token > last.token);
    }

    /// Stops the process that leads, and neither its command nor the watchdog. Returns the last entry before.
    pub(crate) fn freeze_leader(&self) -> Entry {
        let last = self.entries().pop().unwrap();
        let process = self.process(&last.writer);
        process.signal(Signal::STOP);
        let state = format!("/proc/{}/stat", process.pid().as_raw_nonzero());
        wait_until("it is stopped", || fs::read_to_string(&state).unwrap().contains(") T "));
        last
    }

    /// Lets a process go on that was stopped.
    pub(crate) fn thaw(&self, identity: &str) {
        self.process(identity).signal(Signal::CONT);
    }

    fn process(&self, identity: &str) -> &Running {
        &self.replicas.iter().find(|replica| replica.identity == identity).unwrap().process
    }

    /// Waits for an entry of the log, from its first one on.
    pub(crate) fn wait_for_entry(&self, wanted: impl Fn(&Entry) -> bool) {
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

    pub(crate) fn entries(&self) -> Vec<Entry> {
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
pub(crate) fn judge(entries: &[Entry]) {
    for pair in entries.windows(2) {
        let [before, after] = pair else { unreachable!() };
        assert!(after.token >= before.token, "a token went back: {before:?}, {after:?}");
        assert!(after.token > before.token || after.writer == before.writer, "two led at once: {before:?}, {after:?}");
        let gap = after.at.saturating_sub(before.at);
        assert!(gap <= LEASE + BUSY, "a gap of {gap:?}: {before:?}, {after:?}");
    }
}
