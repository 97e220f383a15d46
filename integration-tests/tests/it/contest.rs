//! Five processes compete for one lock, while they are killed and frozen and their networks fail.
//!
//! The seed determines every fault, its target and its time. The reactions of the processes differ from run to
//! run: repeat the test several times with a seed that failed once.

mod chaos;
mod cluster;
mod verdict;

use std::time::{Duration, Instant};

use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::timings::JITTER_FACTOR;
use leaderelection_arena::report::Report;
use leaderelection_integration_tests::proxy::{Delivery, Fault, Reply};
use leaderelection_integration_tests::servers::unique_name;
use leaderelection_integration_tests::stretch;
use rand::SeedableRng as _;
use rand::rngs::Xoshiro256PlusPlus;

use crate::cloud::Cloud;

use cluster::{Cluster, Layout, Site};

const CONTENDERS: usize = 5;

/// The number of rounds of chaos. A round takes about half a second, and longer if a contender ends in good
/// order.
const ROUNDS: usize = 32;

/// The number of rounds on a store that another crate reaches, where others contend on the same server for longer.
const FEW_ROUNDS: usize = 12;

/// The number of reports in which a leader takes a part back that it has lost.
const RENEWALS: usize = 30;

/// The time that requests and timers may add to the protocol's bounds, on a machine that is not busy.
const TOLERANCE: Duration = Duration::from_secs(2);

/// The variable with the seed of all chaos.
const SEED_VARIABLE: &str = "LEADERELECTION_TEST_SEED";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_s3() {
    contest(Site::cloud(Cloud::s3().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_directory_bucket() {
    few_rounds(Site::cloud(Cloud::express_with_short_sessions().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_azure() {
    contest(Site::cloud(Cloud::azure().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_gcs() {
    contest(Site::cloud(Cloud::gcs().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_s3_by_object_store_with_its_retries() {
    few_rounds(Site::cloud(Cloud::object_store_s3_with_retries().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_s3_by_object_store() {
    few_rounds(Site::cloud(Cloud::object_store_s3().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_azure_by_object_store_with_its_retries() {
    few_rounds(Site::cloud(Cloud::object_store_azure_with_retries().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_azure_by_object_store() {
    few_rounds(Site::cloud(Cloud::object_store_azure().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_s3_by_opendal_with_its_retries() {
    few_rounds(Site::cloud(Cloud::opendal_s3_with_retries().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_azure_by_opendal() {
    few_rounds(Site::cloud(Cloud::opendal_azure().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_s3_by_opendal() {
    few_rounds(Site::cloud(Cloud::opendal_s3().await)).await;
}

/// One object per write. Every write removes all earlier ones at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_service_that_can_only_create() {
    few_rounds(Site::cloud(Cloud::opendal_oss_swept().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_leases_of_kubernetes() {
    contest(Site::cloud(Cloud::kube().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_directory() {
    contest(Site::directory(Layout::File)).await;
}

/// One object per write. Every write removes all earlier ones at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_directory_that_can_only_create() {
    contest(Site::directory(Layout::CreateOnly)).await;
}

/// The same, by another crate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_directory_by_opendal() {
    few_rounds(Site::directory(Layout::Opendal)).await;
}

/// Two of three servers decide, which are cut off in turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_majority_of_three_clouds() {
    contest(Site::Clouds(vec![Cloud::s3().await, Cloud::azure().await, Cloud::gcs().await])).await;
}

/// A leader goes on while one part is lost, whichever it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_majority_of_which_one_is_lost() {
    let clouds = vec![Cloud::s3().await, Cloud::azure().await, Cloud::gcs().await];
    let mut cluster = Cluster::start(Site::Clouds(clouds), 2).await;
    let leads = |report: &Report| matches!(report, Report::Inside { .. });
    let Report::Inside { token: first, .. } = cluster.wait_for("a leader", leads).await else { unreachable!() };
    for part in 0..cluster.parts() {
        cluster.lose_part(part, Fault::new(Delivery::Never, Reply::Silence));
        let lost_at = SystemClock.now();
        // The leader has renewed its lease without the part.
        let lease = cluster.timings().lease_duration();
        let goes_on = |report: &Report| matches!(report, Report::Inside { at, .. } if *at >= lost_at + lease * 2);
        let Report::Inside { token, .. } = cluster.wait_for("a leader without one part", goes_on).await else {
            unreachable!()
        };
        assert_eq!(token, first, "the term ended with part {part}");
        cluster.find_part(part).await;
        for _ in 0..RENEWALS {
            cluster.wait_for_more("the leader renews", leads).await;
        }
    }
    cluster.let_all_go().await;
    cluster.clear().await;
}

async fn contest(site: Site) {
    run(site, ROUNDS).await;
}

async fn few_rounds(site: Site) {
    run(site, FEW_ROUNDS).await;
}

async fn run(site: Site, rounds: usize) {
    let seed = std::env::var(SEED_VARIABLE).map_or_else(
        |_| u64::from_str_radix(&unique_name(), 16).expect("a hexadecimal number"),
        |seed| seed.parse().expect("a number"),
    );
    println!("to have the same chaos again, set {SEED_VARIABLE}={seed}");
    let began = Instant::now();
    let mut cluster = Cluster::start(site, CONTENDERS).await;
    chaos::reign(&mut cluster, &mut Xoshiro256PlusPlus::seed_from_u64(seed), rounds).await;

    cluster.calm_down().await;
    let calm = SystemClock.now();
    let leads = |report: &Report| matches!(report, Report::Inside { at, .. } if *at >= calm);
    let Report::Inside { at, .. } = cluster.wait_for("a leader when all is calm", leads).await else { unreachable!() };
    // A candidate sees the last renewal at its next read, after one retry period with its jitter. The candidate
    // takes the lease one lease duration after that read.
    let timings = cluster.timings();
    let bound = timings.lease_duration() + timings.retry_period().mul_f64(1.0 + JITTER_FACTOR) + TOLERANCE * stretch();
    let waited = at.saturating_since(calm);
    assert!(waited <= bound, "a leader {waited:?} after the chaos");
    for _ in 0..3 {
        cluster.wait_for_more("the leader works", |report| matches!(report, Report::Appended { .. })).await;
    }
    cluster.let_all_go().await;

    let (said, log) = (cluster.said(), cluster.log().await);
    cluster.clear().await;
    cluster.judge();
    let problems = verdict::problems(&said, &log);
    let terms = verdict::windows(&said).len();
    println!("{terms} terms and {} entries in {:?}; a leader {waited:?} after the chaos", log.len(), began.elapsed());
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(terms > 1, "nothing happened");
}
