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
