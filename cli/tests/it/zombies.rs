//! Processes that have ended, and that somebody has to collect.

use std::fs;
use std::time::Instant;

use rustix::process::{Pid, Signal};

use crate::support::{LONG, PATIENCE, Place, Running, run};

/// Parent and state of every process.
fn processes() -> Vec<(i32, i32, String)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let fields = |stat: String| {
        let (pid, rest) = stat.split_once(' ')?;
        let mut fields = rest.rsplit_once(") ")?.1.split(' ');
        let (state, parent) = (fields.next()?.to_owned(), fields.next()?.parse().ok()?);
        Some((pid.parse().ok()?, parent, state))
    };
    stats.filter_map(fields).collect()
}

/// The zombies whose parent is `run` or the watchdog.
fn zombies(run: Pid) -> usize {
    let all = processes();
    let run = run.as_raw_nonzero().get();
    let of_run = |parent: i32| parent == run || all.iter().any(|(pid, above, _)| *pid == parent && *above == run);
    all.iter().filter(|(_, parent, state)| state == "Z" && of_run(*parent)).count()
}

#[test]
#[cfg(target_os = "linux")]
fn orphans_are_collected_while_the_command_runs() {
    let place = Place::new();
    let lock = place.lock("a");
    // Some stay in the process group, and some leave it.
    let forks = "for i in $(seq 500); do (true &); (setsid true &); done; echo forked; exec sleep 300";
    let mut running = Running::start(&run(&lock, &LONG, &["sh", "-c", forks]));
    running.wait_for("forked");
    let began = Instant::now();
    while zombies(running.pid()) > 0 {
        assert!(began.elapsed() < PATIENCE, "{} zombies", zombies(running.pid()));
        std::thread::yield_now();
    }
    assert!(!place.record("a").is_released(), "the command has ended before");
    running.signal(Signal::TERM);
    assert_eq!(running.end().code, Some(143));
}

#[test]
fn a_zombie_that_its_parent_forgets_holds_nobody_up() {
    let place = Place::new();
    let lock = place.lock("a");
    // The shell becomes a program that knows nothing of the shell's child, and leaves the process group.
    let forgets = "sh -c 'true & exec setsid sleep 300' & sleep 0.5; exit 3";
    let ended = Running::start(&run(&lock, &LONG, &["sh", "-c", forgets])).end();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(place.record("a").is_released());
}
