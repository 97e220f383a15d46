//! The locks of fleets whose members lead many of them through one session each. The program `sessions` measures what
//! docs/performance.md says.

use std::time::Duration;

use leaderelection_integration_tests::fleet::{Fleet, Settings};
use leaderelection_integration_tests::{gaps, timings};
use leaderelection_proofs::gaps::{Event, Pace, Settings as Members, Throttle};

use crate::cloud::s3::seaweedfs;

/// The number of locks. `.ci/deep` has a thousand.
const LOCKS: usize = 200;

/// The variable with another number of locks.
const LOCKS_VARIABLE: &str = "LEADERELECTION_TEST_LOCKS";

/// A multiple of the lease that no machine is too busy for.
const GENEROUS: u32 = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_locks_of_a_killed_process_are_taken_one_by_one() {
    let timings = timings(9000, 6000, 400);
    let (program, pause) = (env!("CARGO_BIN_EXE_sessions").into(), Duration::ZERO);
    let locks = std::env::var(LOCKS_VARIABLE).map_or(LOCKS, |locks| locks.parse().expect("a number"));
    let settings = Settings { program, members: 3, locks, timings, sends_messages: true, page: pause, request: pause };
    let mut fleet = Fleet::start(settings, seaweedfs().await).await;
    let takeover = fleet.crash().await;
    println!("{takeover}");
    assert!(takeover.first >= timings.lease_duration(), "{takeover}");
    assert!(takeover.last < timings.lease_duration() * GENEROUS, "{takeover}");
    let [since_the_work, since_the_release] = fleet.hand_over(0);
    assert!(since_the_release < since_the_work && since_the_work < timings.lease_duration() * GENEROUS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_that_start_together_behind_a_slow_proxy_lead_every_lock() {
    let pace = Pace { request: Duration::from_millis(30), page: Duration::from_millis(250), throttle: Throttle::Never };
    let settings = Members { locks: 60, members: 3, pace, sends_messages: true, balances: true, rest: Duration::ZERO };
    let measured = gaps::measure(Event::Start, settings, seaweedfs().await).await;
    // The number of led locks in the end is not checked, because a lock may just be moving for balance then.
    assert_eq!(measured.overlaps, 0, "{measured:?}");
    // A session, a listing, and a lock wait for each other.
    assert!(measured.all_led.is_some_and(|after| after > Duration::from_millis(310)), "{measured:?}");
}
