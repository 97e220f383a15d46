//! The times without a leader beside a slow store, at a size that takes seconds.

use std::time::Duration;

use leaderelection_proofs::gaps::{Event, Measured, Pace, Settings, Throttle};

/// The time in which a fleet comes to rest.
const REST: Duration = Duration::from_secs(120);

fn measure(event: Event, locks: usize, page: Duration) -> Measured {
    let pace = Pace { request: Duration::from_millis(30), page, throttle: Throttle::Never };
    let measured =
        event.measure(Settings { locks, members: 3, pace, sends_messages: false, balances: true, rest: REST });
    assert_eq!((measured.overlaps, measured.led), (0, locks), "{event:?}");
    measured
}

#[test]
fn a_listing_that_takes_longer_than_a_request_may_shows_all_locks() {
    // Four pages together take longer than the request timeout.
    let measured = measure(Event::Restart, 3_001, Duration::from_secs(1));
    assert!(measured.all_led.is_some_and(|after| after < Duration::from_secs(30)), "{:?}", measured.all_led);
}

#[test]
fn a_fleet_takes_many_locks_as_fast_as_its_store_allows() {
    let start = |request| {
        let request = Duration::from_millis(request);
        let pace = Pace { request, page: request, throttle: Throttle::Never };
        let settings =
            Settings { locks: 4_096, members: 3, pace, sends_messages: false, balances: true, rest: Duration::ZERO };
        Event::Start.measure(settings)
    };
    // A third of the locks, 128 at a time, after the members know each other.
    let quick = start(30);
    assert!(quick.all_led < Some(Duration::from_millis(1_500)), "{:?}", quick.all_led);
    // Each has more to take than a retry period has time for, and leaves the others theirs.
    let slow = start(300);
    assert!(slow.all_led > Some(Duration::from_secs(3)) && slow.refused < 0.05, "{slow:?}");
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
    assert!(most_of(&roll.gaps, 50) < seconds(0.8) && most_of(&roll.gaps, 99) < seconds(1.5), "{roll:?}");
    let crash = measure(Event::Crash, 1_000, PAGE);
    assert!(crash.all_led < Some(seconds(15.0 + 0.5 + 3.0)), "{crash:?}");
    let join = measure(Event::Join, 1_000, PAGE);
    // Four leases, and a lock that moves has no leader for little more than a quarter of a retry period.
    assert!(join.balanced > Duration::ZERO && join.balanced < seconds(60.0), "{join:?}");
    assert!(most_of(&join.moved, 99) < seconds(1.0), "{join:?}");
}

#[test]
fn members_with_messages_take_over_sooner() {
    const PAGE: Duration = Duration::from_millis(250);
    let pace = Pace { request: Duration::from_millis(30), page: PAGE, throttle: Throttle::Never };
    let measure = |event: Event, balances| {
        let measured =
            event.measure(Settings { locks: 1_000, members: 3, pace, sends_messages: true, balances, rest: REST });
        assert_eq!((measured.overlaps, measured.led), (0, 1_000), "{event:?}");
        measured
    };
    let moved = measure(Event::HandOvers, false).gaps;
    assert!(moved.len() >= 1_000, "{} hand-overs", moved.len());
    // The release, the read of it, and the write that takes the lock are 30 ms each.
    assert!(most_of(&moved, 99) < Duration::from_millis(100), "{:?}", &moved[moved.len() * 98 / 100..]);
    // With balance, each lock is handed back, not before its former leader takes it, and many at a time.
    let moved = measure(Event::HandOvers, true).gaps;
    assert!(moved.len() >= 1_500 && most_of(&moved, 100) < Duration::from_secs(2), "{:?}", moved.last());
    let crash = measure(Event::Crash, true);
    assert!(crash.all_led < Some(Duration::from_millis(15_500)), "{:?}", crash.all_led);
    // A batch of hand-overs is as large as it can be.
    let settings = Settings { locks: 10_000, members: 3, pace, sends_messages: true, balances: true, rest: REST };
    let join = Event::Join.measure(settings);
    assert!(most_of(&join.moved, 99) < Duration::from_millis(200), "{:?}", most_of(&join.moved, 99));
    let stop = measure(Event::Roll, true);
    let [half, most] = [50, 99].map(|of_100| most_of(&stop.gaps, of_100));
    assert!(half < Duration::from_millis(200) && most < Duration::from_millis(500), "{half:?}, {most:?}");
}

#[cfg(feature = "all-tests")]
#[test]
fn requests_about_locks_never_delay_the_renewal_of_their_session() {
    const SECOND: Duration = Duration::from_secs(1);
    let slow = Pace { request: SECOND, page: SECOND, throttle: Throttle::Never };
    let refuses = |throttle| Pace { request: Duration::from_millis(30), page: Duration::from_millis(60), throttle };
    for (locks, pace) in
        [(100_000, slow), (12_000, refuses(Throttle::EverySecond)), (20_000, refuses(Throttle::Beyond(1_000)))]
    {
        let settings = Settings { locks, members: 1, pace, sends_messages: false, balances: true, rest: REST };
        let measured = Event::Start.measure(settings);
        assert_eq!((measured.led, measured.overlaps), (locks, 0), "{pace:?}");
        // A session that is not renewed in time loses all its locks.
        assert!(measured.moved.is_empty(), "{} terms ended, {pace:?}", measured.moved.len());
        // A retry period, or the request before, which is not answered sooner. A request for the local session waits for no
        // other.
        assert!(measured.renewals.sent <= SECOND * 2 + pace.request, "{:?}, {pace:?}", measured.renewals);
    }
}
