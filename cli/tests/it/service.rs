//! A service of three replicas that are rolled one by one, and the log of what its leaders did.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;

use crate::support::{Lines, Place, Running, leaderelect};

const TIMINGS: [&str; 6] = ["--lease", "6s", "--renew", "4s", "--retry", "200ms"];
const LEASE: Duration = Duration::from_secs(6);

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
    at: Duration,
}

/// The log, and the replicas.
pub(crate) struct Service {
    // Dropped first, so that nobody loses its locks before it ends.
    pub(crate) replicas: Vec<Running>,
    log: PathBuf,
    pub(crate) place: Place,
    environment: Vec<(&'static str, PathBuf)>,
}

impl Service {
    pub(crate) fn new(environment: Vec<(&'static str, PathBuf)>) -> Self {
        let place = Place::new();
        let log = place.path("log");
        fs::write(&log, "").unwrap();
        Self { replicas: Vec::new(), log, place, environment }
    }

    pub(crate) fn command(&self, locks: &[&str], identity: &str) -> Command {
        let work = ["--", "sh", "-c", WORK, self.log.to_str().unwrap()];
        let args = [&["-v", "run", "--campaign", "--identity", identity], locks, &TIMINGS, &work].concat();
        let mut command = leaderelect(args);
        command.envs(self.environment.clone());
        command
    }

    /// Replaces the replicas one by one, each when the one before has read the locks and somebody leads. Then waits until one
    /// of the new replicas has led.
    pub(crate) fn roll(&mut self, phase: &str, locks: &[&str]) {
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

    /// Kills the replica that leads, and waits until another one does, and not only one that starts later. Returns its number.
    pub(crate) fn kill_leader(&mut self) -> usize {
        let last = self.entries().pop().unwrap();
        let number = last.writer.rsplit_once('-').unwrap().1.parse().unwrap();
        let killed = self.replicas.remove(number);
        killed.signal(Signal::KILL);
        killed.end();
        self.wait_for_entry(|entry| entry.token > last.token);
        number
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
