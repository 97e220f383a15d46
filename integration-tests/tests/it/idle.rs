//! Processes to which nothing happens: few connections, and no request but renewals and polls.

use std::path::Path;

use leaderelection_integration_tests::connections::count;
use leaderelection_integration_tests::timings;

const RENEWALS: usize = 40;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_and_a_follower_keep_their_connections() {
    let own = tempfile::tempdir().expect("a directory");
    let program = Path::new(env!("CARGO_BIN_EXE_contender"));
    // No request of a busy machine is late.
    let timings = timings(60_000, 40_000, 200);
    let counted = count(program, timings, RENEWALS, Path::new(env!("CARGO_TARGET_TMPDIR")), own.path()).await;
    for counted in counted {
        println!("{counted:?}");
        for needs in [counted.leader, counted.follower] {
            assert_eq!(needs.connections, 1, "{counted:?}");
            assert!((RENEWALS / 4..RENEWALS + 6).contains(&needs.requests), "{counted:?}");
        }
    }
}
