//! The time from the last renewal of a process that died to the takeover of its locks.

use std::time::Duration;

use super::fleet::{Fleet, rules};

const LOCKS: u32 = 100;
const LEASE: Duration = Duration::from_secs(15);
const RETRY: Duration = Duration::from_secs(2);

/// The number of moments within a retry period at which a process joins or dies.
const PHASES: u32 = 40;

/// The largest delay of a poll behind the renewal that it shows, and the grain of the time of these tests.
const LATE: Duration = Duration::from_millis(250 + 20);

/// Lets a process that leads all locks die at one moment within a retry period. Returns the fleet, with two further processes that
/// joined at another moment.
fn fleet_after_a_crash(joins: u32, dies: u32) -> Fleet {
    let mut fleet = Fleet::default();
    fleet.join(rules("a"), LOCKS);
    fleet.pass_exactly(RETRY + RETRY * joins / PHASES);
    fleet.join(rules("b"), LOCKS);
    fleet.pass_exactly(RETRY * dies / PHASES);
    fleet.join(rules("c"), LOCKS);
    fleet.pass_exactly(RETRY * 10 + RETRY * dies / PHASES);
    assert_eq!(fleet.led_by(0, LOCKS), LOCKS as usize);
    fleet.members[0].alive = false;
    fleet
}

#[test]
fn the_locks_of_a_dead_process_are_taken_soon_after_its_lease() {
    for (joins, dies) in (0..PHASES).flat_map(|joins| (0..PHASES).step_by(7).map(move |dies| (joins, dies))) {
        let mut fleet = fleet_after_a_crash(joins, dies);
        let renewed_at = fleet.renewed_at[&fleet.session_of(0)];
        fleet.pass_exactly((renewed_at + LEASE).saturating_since(fleet.now));
        assert_eq!(fleet.led_by(1, LOCKS) + fleet.led_by(2, LOCKS), 0, "within the lease");
        fleet.pass_exactly(LATE);
        let led = [1, 2].map(|member| fleet.led_by(member, LOCKS));
        assert_eq!(led[0] + led[1], LOCKS as usize, "{led:?}, joins: {joins}, dies: {dies}");
        assert!(led[0].min(led[1]) > 30, "each its share at once: {led:?}, joins: {joins}, dies: {dies}");
    }
}

#[test]
fn a_listing_that_spells_versions_in_its_own_way_puts_no_end_off() {
    // Sessions are listed every 30 s, and one of these moments is soon after the crash.
    for dies in 0..16 {
        let mut fleet = Fleet { spells_otherwise: true, ..Fleet::default() };
        for member in ["a", "b", "c"] {
            fleet.join(rules(member), LOCKS);
            fleet.pass_exactly(RETRY * 2);
        }
        fleet.pass_exactly(RETRY * (30 + dies));
        fleet.members[0].alive = false;
        let renewed_at = fleet.renewed_at[&fleet.session_of(0)];
        fleet.pass_exactly((renewed_at + LEASE + LATE).saturating_since(fleet.now));
        assert_eq!(fleet.led_by(1, LOCKS) + fleet.led_by(2, LOCKS), LOCKS as usize, "dies: {dies}");
    }
}

#[test]
fn a_session_costs_its_observers_little_more_than_a_read_for_each_renewal() {
    for joins in 0..PHASES {
        let mut fleet = fleet_after_a_crash(joins, 0);
        fleet.pass_exactly(LEASE * 2);
        fleet.requests = super::fleet::Requests::default();
        fleet.pass_exactly(Duration::from_secs(3600));
        let (renewals, reads) = (fleet.requests.session_writes, fleet.requests.reads);
        assert_eq!(renewals, 2 * 1_800);
        assert!(reads <= renewals * 108 / 100, "{reads} reads, joins: {joins}");
    }
}
