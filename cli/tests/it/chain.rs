//! The chain of processes from `run` to its command. Whichever two of them are killed or stopped, at the same moment or a
//! lease apart, nothing of the command works beside a later term.

use std::fs::{self, File};
use std::future::pending;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use leaderelection::{DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership};
use leaderelection_backends::url::Location;
use rustix::process::{Pid, Signal, kill_process};

use tokio::runtime::Runtime;

use self::Link::{Command, Guard, Run, Watchdog};
use crate::pipe::Pipe;
use crate::support::{LONG, PATIENCE, Place, Running, run};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Run,
    Guard,
    Watchdog,
    Command,
}

/// A signal, and the process that gets it.
type Fault = (Signal, Link);

/// The faults of a case: the first, those of the same moment, and those that follow a lease later.
type Case = (Vec<Fault>, Vec<Fault>);

const KILL: Signal = Signal::KILL;
const STOP: Signal = Signal::STOP;

/// The cases run at a time. Each has about eight processes.
const AT_A_TIME: usize = 8;

/// The timings of the first leader, and the number of renewals between two faults: more than one lease allows for.
const SHORT: [&str; 6] = ["--lease-duration", "16s", "--renew-deadline", "8s", "--retry-period", "1s"];
const RENEWALS: u32 = 9;

/// The number of renewals between two faults, for a run with minutes between them: 240 renewals take four minutes. The cases
/// with two moments come first, and so wait at the same time.
const RENEWALS_VARIABLE: &str = "LEADERELECTION_TEST_CHAIN_RENEWALS";

fn renewals_between_faults() -> Option<u32> {
    Some(std::env::var(RENEWALS_VARIABLE).ok()?.parse().unwrap())
}

/// Writes its token again and again, and not forever, should the test find that nobody ends it. The pause starts no process.
const TICKS: &str =
    "exec 5<> <(:); for i in {1..6000}; do echo $LEADERELECTION_FENCING_TOKEN >>\"$1\"; read -t 0.2 -u 5; done";

/// A command that ignores SIGTERM, with a process that drains after SIGTERM, and one that does so in a session of its own. It
/// has written its token before it is up: a fault may come at once.
fn stubborn() -> String {
    let drains = format!("trap 'echo drains >&4' TERM; {TICKS}");
    format!(
        "exec 4>\"$0\" >/dev/null 2>&1; ({drains}) & setsid bash -c \"$2\" \"$0\" \"$1\" & trap '' TERM; \
         echo $LEADERELECTION_FENCING_TOKEN >>\"$1\"; echo up >&4; {TICKS}"
    )
}

/// The processes below `parent`, as `/proc` tells them: their numbers and their command lines.
fn below(parent: Pid) -> Vec<(Pid, String)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    let is_child = |pid: &Pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let above = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        above == Some(parent.as_raw_nonzero().get())
    };
    pids.filter(is_child).map(|pid| (pid, command_line(pid))).collect()
}

fn command_line(pid: Pid) -> String {
    fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ")
}

/// A leader whose command is at work, and its processes.
struct Chain {
    place: Place,
    pipe: Pipe,
    running: Running,
    guard: Pid,
    watchdog: Pid,
    command: Pid,
}

impl Chain {
    fn start(program: impl Fn(&Place) -> String) -> Self {
        let place = Place::new();
        let pipe = Pipe::new(&place);
        let (lock, log) = (place.lock("a"), place.path("log"));
        let (program, drains) = (program(&place), format!("trap 'echo drains >&4' TERM; {TICKS}"));
        let words = [&program, "-c", &stubborn(), &pipe.path, log.to_str().unwrap(), &drains];
        let running = Running::start(&run(&lock, &SHORT, &words));
        pipe.wait_for_start();
        let only = |parent, what: &str| match &below(parent)[..] {
            [(pid, line)] if line.contains(what) => *pid,
            others => panic!("no {what}: {others:?}"),
        };
        let guard = only(running.pid(), "__guard");
        let watchdog = only(guard, "__watchdog");
        let command = only(watchdog, "-c");
        Self { place, pipe, running, guard, watchdog, command }
    }

    fn suffers(&self, (signal, link): Fault) {
        let pid = match link {
            Run => self.running.pid(),
            Guard => self.guard,
            Watchdog => self.watchdog,
            Command => self.command,
        };
        // The process may have ended after an earlier fault.
        let _ = kill_process(pid, signal);
    }

    /// Waits until a lease has passed, in which the leader has renewed, or until it has ended.
    fn live_for_a_lease(&self) {
        let (mut last, mut renewals, mut seen) = (Instant::now(), 0, None);
        let wanted = renewals_between_faults().unwrap_or(RENEWALS);
        while renewals < wanted && !self.place.record("a").is_released() {
            assert!(last.elapsed() < PATIENCE, "the lease is neither renewed nor released");
            let renewed = Some(self.place.record("a").renew_time);
            if std::mem::replace(&mut seen, renewed) != renewed {
                (last, renewals) = (Instant::now(), renewals + 1);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asserts that all processes end, and that the command wrote nothing after the next term had begun.
    fn ends_before_the_next_term(self, case: &str) {
        self.pipe.wait_for_end();
        let log = fs::read_to_string(self.place.path("log")).unwrap();
        let (before, behind) = log.split_once("2\n").unwrap_or((&log, ""));
        assert!(before.contains("1\n"), "{case}: the command did not work: {log}");
        assert!(!behind.contains('1'), "{case}: the command worked beside the next term: {log}");
        // Who is stopped after the others have ended has nobody left who continues it.
        for pid in [self.running.pid(), self.guard, self.watchdog] {
            let _ = kill_process(pid, Signal::CONT);
        }
        self.running.end();
    }

    /// Starts the next candidate, which writes its token as soon as it leads, and waits until it has seen the leader.
    async fn is_waited_for(&self) {
        let (lock, log) = (self.place.lock("a"), self.place.path("log"));
        let lock = lock.parse::<Location>().unwrap().lock("next").await.unwrap();
        let config = LeaderElectionConfig::builder(Arc::new(lock), LeaderCallbacks::new());
        let elector = DefaultLeaderElector::new(config.build().unwrap());
        let mut handle = elector.handle();
        let work = move |leadership: Leadership| async move {
            // The case may be over, and its directory gone.
            if let Ok(mut log) = File::options().append(true).open(log) {
                writeln!(log, "{}", leadership.fencing_token()).unwrap();
            }
        };
        tokio::spawn(async move { elector.run_while_leading(pending(), work).await });
        while handle.leader().is_none() {
            handle.changed().await.unwrap();
        }
    }
}

fn cases() -> Vec<Case> {
    let all = || [Run, Guard, Watchdog].into_iter().flat_map(|link| [(KILL, link), (STOP, link)]);
    let pairs = || all().flat_map(|first| all().map(move |second| (first, second)));
    // All that is killed ends the command at once, and a stopped `run` ends it in time: nothing is left for a second fault.
    let later = pairs().filter(|(first, second)| first.0 == STOP && first.1 != Run && first.1 != second.1);
    let mut cases: Vec<Case> = later.map(|(first, second)| (vec![first], vec![second])).collect();
    let at_once = pairs().filter(|(first, second)| (first.1 as u8) < second.1 as u8);
    cases.extend(at_once.map(|(first, second)| (vec![first, second], vec![])));
    cases.push((vec![(KILL, Guard)], vec![]));
    // The command itself ends, or stands still, and leaves processes behind.
    let of_command =
        [((KILL, Command), (KILL, Run)), ((KILL, Command), (KILL, Watchdog)), ((STOP, Command), (STOP, Run))];
    cases.extend(of_command.map(|(first, second)| (vec![first, second], vec![])));
    cases
}

/// Names its case if the test fails.
struct Named(String);

impl Drop for Named {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("the case of {}", self.0);
        }
    }
}

fn examine(runtime: &Runtime, (at_once, later): &Case) {
    let Named(case) = &Named(format!("{at_once:?}, and later {later:?}"));
    let chain = Chain::start(|_| "bash".to_owned());
    runtime.block_on(chain.is_waited_for());
    at_once.iter().for_each(|fault| chain.suffers(*fault));
    if !later.is_empty() {
        chain.live_for_a_lease();
        later.iter().for_each(|fault| chain.suffers(*fault));
    }
    let mut faults = at_once.iter().chain(later);
    if faults.all(|(signal, link)| *signal == STOP && *link != Run) {
        // Whoever is left continues the others.
        chain.live_for_a_lease();
        assert!(!chain.place.record("a").is_released(), "{case}: the command has ended");
        chain.suffers((KILL, Run));
    }
    chain.ends_before_the_next_term(case);
}

#[test]
fn whichever_two_are_killed_or_stopped_nothing_works_beside_a_later_term() {
    let (cases, runtime) = (&Mutex::new(cases().into_iter()), &Runtime::new().unwrap());
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            let next = || cases.lock().unwrap().next();
            scope.spawn(move || std::iter::from_fn(next).for_each(|case| examine(runtime, &case)));
        }
    });
}

/// All processes from `root` on whose name or command line has the program's name, as `pkill -f` finds them.
fn by_name(root: Pid) -> Vec<Pid> {
    let mut processes = vec![(root, command_line(root))];
    let mut looked = 0;
    while let Some((pid, _)) = processes.get(looked) {
        processes.extend(below(*pid));
        looked += 1;
    }
    let name = |pid| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    processes.retain(|(pid, line)| format!("{}{line}", name(*pid)).contains("leaderelect"));
    processes.into_iter().map(|(pid, _)| pid).collect()
}

#[test]
fn whoever_kills_by_the_name_of_the_program_leaves_its_guards() {
    // The command has the name among its words.
    let chain = Chain::start(|place| {
        let shell = place.path("leaderelect-job");
        fs::write(&shell, "#!/bin/sh\nexec bash \"$@\" leaderelect\n").unwrap();
        fs::set_permissions(&shell, fs::Permissions::from_mode(0o755)).unwrap();
        shell.to_str().unwrap().to_owned()
    });
    let runtime = Runtime::new().unwrap();
    runtime.block_on(chain.is_waited_for());
    for (pid, name) in [(chain.guard, "leader-guard"), (chain.watchdog, "leader-watchdog")] {
        assert_eq!(fs::read_to_string(format!("/proc/{pid}/comm")).unwrap().trim_end(), name);
        assert!(command_line(pid).starts_with(name), "{}", command_line(pid));
    }
    let found = by_name(chain.running.pid());
    assert!(found.contains(&chain.running.pid()) && found.contains(&chain.command), "{found:?}");
    assert!(!found.contains(&chain.guard) && !found.contains(&chain.watchdog), "{found:?}");
    for pid in found {
        let _ = kill_process(pid, KILL);
    }
    chain.ends_before_the_next_term("by name");
}

#[test]
fn the_command_itself_does_not_outlive_all_three() {
    let place = Place::new();
    let pipe = Pipe::new(&place);
    let ignores = "exec 4>\"$0\" >/dev/null 2>&1; trap '' TERM; echo up >&4; exec sleep 300";
    let running = Running::start(&run(&place.lock("a"), &LONG, &["sh", "-c", ignores, &pipe.path]));
    pipe.wait_for_start();
    let (guard, _) = below(running.pid())[0];
    let (watchdog, _) = below(guard)[0];
    // None of them gets to do anything.
    for (signal, pid) in
        [STOP, KILL].into_iter().flat_map(|signal| [running.pid(), guard, watchdog].map(|pid| (signal, pid)))
    {
        kill_process(pid, signal).unwrap();
    }
    pipe.wait_for_end();
}
