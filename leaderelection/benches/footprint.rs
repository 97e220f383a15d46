//! Prints allocations per renewal and bytes per idle elector.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on should say so and end")]

#[allow(dead_code, reason = "the tests need more of it")]
#[path = "../tests/it/footprint/leader.rs"]
mod leader;
#[allow(dead_code, reason = "the tests need more of it")]
#[path = "../tests/it/footprint/measure.rs"]
mod measure;
#[path = "../tests/it/footprint/sessions.rs"]
mod sessions;

fn main() {
    let (writes, electors) =
        if std::env::args().any(|argument| argument == "--bench") { (10_000, 10_000) } else { (100, 100) };
    let bare = measure::allocations_per_bare_write(writes);
    let renewal = measure::allocations_per_renewal(writes);
    println!("allocations per bare store write       {bare:>8.1}");
    println!("allocations per renewal                {renewal:>8.1}");
    println!("allocations added by the elector       {:>8.1}", renewal - bare);
    println!("bytes per idle leader                  {:>8.0}", measure::bytes_per_leader(electors));
    println!("bytes per idle follower                {:>8.0}", measure::bytes_per_follower(electors));
    let lock = sessions::bytes_per_lock_of_session(electors);
    println!("bytes per lock of a session            {:>8.0}", lock.in_process);
    println!("bytes of its object in a MemoryStore   {:>8.0}", lock.in_store);
    println!("allocations per renewal of a session   {:>8.1}", sessions::allocations_per_session_renewal(20, 150));
}
