//! Ten hosts and many nights.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::{job, run};
use crate::support::{Ended, LONG, Place, Running};

/// The nights that pass at a time, each on a lock of its own.
const LOCKS: u32 = 8;

/// The nights of each lock.
const NIGHTS: u32 = 2;

/// The variable with another number of nights.
const NIGHTS_VARIABLE: &str = "LEADERELECTION_TEST_NIGHTS";

const HOSTS: u32 = 10;

/// The delay after which a host starts in a night, spread unevenly from 0 to 3 s.
fn skew(lock: u32, night: u32, host: u32) -> Duration {
    let number = (night * LOCKS + lock) * HOSTS + host;
    Duration::from_millis(u64::from(number.wrapping_mul(2_654_435_761) >> 16) % 3_000)
}

/// Lets one night pass on one lock, and returns the ends of all hosts.
fn pass(place: &Place, lock: u32, night: u32) -> Vec<Ended> {
    let name = format!("night-{night}");
    let url = place.lock(&format!("job-{lock}"));
    let command = format!("echo {name} >>{}; sleep 0.2", place.path(&format!("log-{lock}")).display());
    let mut hosts: Vec<_> = (0..HOSTS).map(|host| (skew(lock, night, host), host)).collect();
    hosts.sort_unstable();
    let began = Instant::now();
    let start = |(skew, host): (Duration, u32)| {
        thread::sleep(skew.saturating_sub(began.elapsed()));
        let identity = format!("host-{host}");
        let options = [&job(&LONG, &name)[..], &["--identity", &identity]].concat();
        Running::start(&run(&url, &options, &["sh", "-c", &command]))
    };
    let hosts: Vec<_> = hosts.into_iter().map(start).collect();
    hosts.into_iter().map(Running::end).collect()
}

#[test]
fn ten_hosts_run_a_job_once_in_each_night() {
    let place = Place::new();
    let nights = std::env::var(NIGHTS_VARIABLE).map_or(NIGHTS, |nights| nights.parse().unwrap());
    thread::scope(|scope| {
        for lock in 0..LOCKS {
            let place = &place;
            scope.spawn(move || {
                for night in 0..nights {
                    let ends = pass(place, lock, night);
                    assert!(ends.iter().all(|end| end.code == Some(0)), "{ends:?}");
                    let idle = |end: &&Ended| end.stderr.contains("is already done; the command was not run");
                    assert_eq!(ends.iter().filter(idle).count(), HOSTS as usize - 1, "{ends:?}");
                }
                let ran = fs::read_to_string(place.path(&format!("log-{lock}"))).unwrap();
                let nights: Vec<_> = (0..nights).map(|night| format!("night-{night}")).collect();
                assert_eq!(ran.lines().collect::<Vec<_>>(), nights, "lock {lock}");
                let done = place.record(&format!("job-{lock}")).completed_jobs();
                assert!(done.iter().rev().eq(&nights), "{done:?}");
            });
        }
    });
}
