//! The locks of a process that leads a thousand of them through one session, and is killed.

use leaderelection_integration_tests::crash::Crash;
use leaderelection_integration_tests::timings;

use crate::cloud::s3::seaweedfs;

/// A multiple of the lease that no machine is too busy for. The program `crash` measures what docs/performance.md says.
const GENEROUS: u32 = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_locks_of_a_killed_process_are_taken_soon() {
    let timings = timings(4000, 2500, 400);
    let crash = Crash { program: env!("CARGO_BIN_EXE_crash").into(), locks: 1_000, timings };
    let takeover = crash.happen(seaweedfs().await).await;
    println!("{takeover}");
    assert!(takeover.first >= timings.lease_duration(), "{takeover}");
    assert!(takeover.last < timings.lease_duration() * GENEROUS, "{takeover}");
}
