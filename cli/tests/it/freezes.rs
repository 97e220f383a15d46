//! Leaders that are stopped on a busy machine: the command of each ends in time, and before another works.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::service::{Entry, Service, judge};

const LEASE: Duration = Duration::from_secs(3);
const TIMINGS: [&str; 6] = ["--lease-duration", "3s", "--renew-deadline", "2s", "--retry-period", "200ms"];

/// The time after a renewal at which the command of a stopped leader gets SIGKILL: D + 3 (L - D) / 4.
const KILL: Duration = Duration::from_millis(2750);

/// The services side by side, each with its own lock.
const SERVICES: usize = 4;

/// The variable with the number of freezes. The busy threads beside them are few where other tests run.
const FREEZES: &str = "LEADERELECTION_TEST_FREEZES";
const LOAD: usize = 30;
const LOAD_BESIDE_TESTS: usize = 2;

/// Threads that keep the processors busy until this is dropped: the other tests of this process go on behind it.
struct Busy(Arc<AtomicBool>);

impl Busy {
    fn start(threads: usize) -> Self {
        let busy = Self(Arc::new(AtomicBool::new(true)));
        for _ in 0..threads {
            let goes_on = Arc::clone(&busy.0);
            thread::spawn(move || {
                while goes_on.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        busy
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Freezes the leader again and again. Returns the time from the last renewal of each to the last work of its command.
fn freezes(many: usize) -> Vec<Duration> {
    let mut service = Service::new(Vec::new());
    service.timings = TIMINGS;
    let lock = service.place.lock("worker");
    for identity in ["first", "second"] {
        service.start(&["--lock", &lock], identity.to_owned());
    }
    let mut worked = Vec::new();
    for _ in 0..many {
        service.wait_for_leader(Duration::ZERO);
        let frozen = service.freeze_leader();
        let renewed = SystemTime::from(service.place.record("worker").renew_time.unwrap());
        service.wait_for_entry(|entry| entry.token > frozen.token);
        service.thaw(&frozen.writer);
        let entries = service.entries();
        judge(&entries);
        let last: &Entry = entries.iter().rfind(|entry| entry.token == frozen.token).unwrap();
        worked.push(last.at.saturating_sub(renewed.duration_since(UNIX_EPOCH).unwrap()));
    }
    worked
}

#[test]
fn the_command_of_a_frozen_leader_ends_within_the_lease() {
    let wanted = std::env::var(FREEZES).ok().map(|number| number.parse::<usize>().expect(FREEZES));
    let load = wanted.map_or(LOAD_BESIDE_TESTS, |_| LOAD);
    let many = wanted.unwrap_or(SERVICES).div_ceil(SERVICES);
    let busy = Busy::start(load);
    let services: Vec<_> = (0..SERVICES).map(|_| thread::spawn(move || freezes(many))).collect();
    let mut worked: Vec<_> = services.into_iter().flat_map(|service| service.join().unwrap()).collect();
    drop(busy);
    worked.sort_unstable();
    let late = worked.iter().filter(|worked| **worked > KILL).count();
    println!(
        "{} freezes at a load of {load}: {late} commands worked past {KILL:?}, until {:?} at most",
        worked.len(),
        worked.last()
    );
    // Beside other tests, this process itself may get the processor late.
    let latest = if wanted.is_some() { KILL } else { LEASE };
    assert!(worked.iter().all(|worked| *worked <= latest), "{worked:?}");
}
