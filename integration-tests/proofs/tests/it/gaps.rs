//! The times without a leader beside a slow store, at a size that takes seconds.

use std::time::Duration;

use leaderelection_proofs::gaps::{Event, Measured, Pace, Settings, Throttle};

fn measure(event: Event, locks: usize, page: Duration) -> Measured {
    let pace = Pace { request: Duration::from_millis(30), page, throttle: Throttle::Never };
    let measured = event.measure(Settings { locks, members: 3, pace });
    assert_eq!((measured.overlaps, measured.led), (0, locks), "{event:?}");
    measured
}

#[test]
fn a_listing_that_takes_longer_than_a_request_may_shows_all_locks() {
    // Four pages together take longer than the request timeout.
    let measured = measure(Event::Restart, 3_001, Duration::from_secs(1));
    assert!(measured.all_led.is_some_and(|after| after < Duration::from_secs(30)), "{:?}", measured.all_led);
}

/// Returns the time that so many of 100 times are at most.
fn most_of(gaps: &[Duration], of_100: usize) -> Duration {
    gaps[(gaps.len() - 1) * of_100 / 100]
}

#[test]
fn every_change_of_the_members_costs_each_lock_what_is_documented() {
    const PAGE: Duration = Duration::from_millis(60);
    let seconds = Duration::from_secs_f64;
    let start = measure(Event::Start, 1_000, PAGE);
    assert!(start.all_led < Some(seconds(5.0)) && start.refused < 0.05, "{start:?}");
    let roll = measure(Event::Roll, 1_000, PAGE);
    assert!(most_of(&roll.gaps, 50) < seconds(1.6) && most_of(&roll.gaps, 99) < seconds(4.0), "{roll:?}");
    let crash = measure(Event::Crash, 1_000, PAGE);
    assert!(crash.all_led < Some(seconds(15.0 + 0.5 + 3.0)), "{crash:?}");
    let join = measure(Event::Join, 1_000, PAGE);
    // Four leases, and a lock that moves has no leader for little more than a quarter of a retry period.
    assert!(join.balanced > Duration::ZERO && join.balanced < seconds(60.0), "{join:?}");
    assert!(most_of(&join.moved, 99) < seconds(1.0), "{join:?}");
}

#[test]
fn requests_about_locks_never_delay_the_renewal_of_their_session() {
    let slow = Pace { request: Duration::from_secs(1), page: Duration::from_secs(1), throttle: Throttle::Never };
    let refuses = |throttle| Pace { request: Duration::from_millis(30), page: Duration::from_millis(60), throttle };
    for (locks, pace) in
        [(20_000, slow), (2_000, refuses(Throttle::EverySecond)), (20_000, refuses(Throttle::Beyond(1_000)))]
    {
        let measured = Event::Start.measure(Settings { locks, members: 1, pace });
        assert_eq!((measured.led, measured.overlaps), (locks, 0), "{pace:?}");
        // A session that is not renewed in time loses all its locks.
        assert!(measured.moved.is_empty(), "{} terms ended, {pace:?}", measured.moved.len());
    }
}
