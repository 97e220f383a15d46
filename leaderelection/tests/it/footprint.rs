//! The cost of an elector, in counts that do not depend on the speed of the machine.

mod leader;
mod measure;
mod sessions;

/// The limit that keeps a process with ten thousand locks fast: see `docs/performance.md`.
const MOST_ALLOCATIONS: f64 = 30.0;
const MOST_BYTES: f64 = 8.0 * 1024.0;
// The target is 2,048, which the benchmark measures. Futures are a little larger here, because tests are not optimized.
const MOST_BYTES_OF_SESSION: f64 = 2_432.0;

#[test]
fn a_renewal_adds_few_allocations_to_its_write() {
    let added = measure::allocations_per_renewal(100) - measure::allocations_per_bare_write(100);
    assert!((0.0..MOST_ALLOCATIONS).contains(&added), "{added} allocations per renewal");
}

#[test]
fn an_idle_leader_holds_little() {
    let bytes = measure::bytes_per_leader(500);
    assert!((0.0..MOST_BYTES).contains(&bytes), "{bytes} bytes per leader");
}

#[test]
fn an_idle_follower_holds_little() {
    let bytes = measure::bytes_per_follower(500);
    assert!((0.0..MOST_BYTES).contains(&bytes), "{bytes} bytes per follower");
}

#[test]
fn a_lock_of_a_session_holds_little() {
    let lock = sessions::bytes_per_lock_of_session(1_000);
    let (bytes, in_store) = (lock.in_process, lock.in_store);
    assert!((0.0..MOST_BYTES_OF_SESSION).contains(&bytes), "{bytes} bytes per lock, and {in_store} in the store");
}

/// Besides the listings every 30 s, which name every lock.
#[test]
fn a_renewal_costs_the_same_however_many_locks_the_session_leads() {
    let (few, many) =
        (sessions::allocations_per_session_renewal(20, 150), sessions::allocations_per_session_renewal(1_000, 150));
    let per_lock_and_listing = (many - few) * 15.0 / 980.0;
    assert!(per_lock_and_listing < 8.0, "{few} and {many} allocations per renewal: {per_lock_and_listing}");
}
