//! Five processes compete for one lock, while they are killed and frozen and their networks fail.
//!
//! The seed determines every fault, its target and its time. The reactions of the processes differ from run to
//! run: repeat the test several times with a seed that failed once.

mod chaos;
mod cluster;
mod host;
mod site;
mod stalls;
mod troubles;
mod verdict;

use std::time::Duration;

use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::timings::JITTER_FACTOR;
use leaderelection_arena::report::Report;
use leaderelection_integration_tests::proxy::{Delivery, Exchange, Fault, Kind, Reply};
use leaderelection_integration_tests::servers::unique_name;
use leaderelection_integration_tests::{stretch, timings};
use rand::SeedableRng as _;
use rand::rngs::Xoshiro256PlusPlus;

use crate::cloud::Cloud;

use cluster::Cluster;
use host::{Host, Loss};
use site::{Layout, Site};
use troubles::{Course, Shown};

const CONTENDERS: usize = 5;

/// The number of rounds of chaos. A round takes about half a second, and longer if a contender ends gracefully.
const ROUNDS: usize = 12;

/// The variable with another number of rounds.
const ROUNDS_VARIABLE: &str = "LEADERELECTION_TEST_ROUNDS";

/// The time that requests and timers may add to the protocol's bounds, on a machine that is not busy.
const TOLERANCE: Duration = Duration::from_secs(2);

/// The seconds for which servers are killed, frozen and cut off.
const SECONDS: u64 = 20;

/// The variable with another number of these seconds.
const SECONDS_VARIABLE: &str = "LEADERELECTION_TEST_SIEGE_SECONDS";

/// The variable with the seed of all chaos.
const SEED_VARIABLE: &str = "LEADERELECTION_TEST_SEED";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_s3() {
    contest(Site::cloud(Cloud::s3().await)).await;
}

#[cfg(feature = "all-tests")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_directory_bucket() {
    contest(Site::cloud(Cloud::express_with_short_sessions().await)).await;
}

#[cfg(feature = "all-tests")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_azure() {
    contest(Site::cloud(Cloud::azure().await)).await;
}

#[cfg(feature = "all-tests")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_gcs() {
    contest(Site::cloud(Cloud::gcs().await)).await;
}

#[cfg(feature = "all-tests")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_s3_by_object_store_with_its_retries() {
    contest(Site::cloud(Cloud::object_store_s3_with_retries().await)).await;
}

#[cfg(feature = "all-tests")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_s3_by_object_store() {
    contest(Site::cloud(Cloud::object_store_s3().await)).await;
}

#[cfg(feature = "all-tests")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_azure_by_object_store_with_its_retries() {
    contest(Site::cloud(Cloud::object_store_azure_with_retries().await)).await;
}

#[cfg(feature = "all-tests")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_azure_by_object_store() {
    contest(Site::cloud(Cloud::object_store_azure().await)).await;
}

#[cfg(feature = "all-tests")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_s3_by_opendal_with_its_retries() {
    contest(Site::cloud(Cloud::opendal_s3_with_retries().await)).await;
}

#[cfg(feature = "all-tests")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_azure_by_opendal() {
    contest(Site::cloud(Cloud::opendal_azure().await)).await;
}

#[cfg(feature = "all-tests")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_s3_by_opendal() {
    contest(Site::cloud(Cloud::opendal_s3().await)).await;
}

/// One object per write. Every write removes all earlier ones at once.
#[cfg(feature = "all-tests")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_service_that_can_only_create() {
    contest(Site::cloud(Cloud::opendal_oss_swept().await)).await;
}

#[cfg(feature = "all-tests")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_kubernetes_leases() {
    contest(Site::cloud(Cloud::kube().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_directory() {
    contest(Site::directory(Layout::File)).await;
}

/// One object per write. Every write removes all earlier ones at once.
#[cfg(feature = "all-tests")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_directory_that_can_only_create() {
    contest(Site::directory(Layout::CreateOnly)).await;
}

/// Two of three servers decide, which are killed, frozen and cut off.
#[cfg(feature = "all-tests")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_majority_of_three_clouds() {
    siege(vec![Host::seaweedfs().await, Host::azurite().await, Host::google().await]).await;
}

/// The same on servers of one kind.
#[cfg(feature = "all-tests")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_majority_of_three_buckets() {
    siege(vec![Host::seaweedfs().await, Host::seaweedfs().await, Host::seaweedfs().await]).await;
}

/// A leader goes on while one part is lost, whichever it is.
#[cfg(feature = "all-tests")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_majority_of_which_one_is_lost() {
    let clouds = vec![Cloud::s3().await, Cloud::azure().await, Cloud::gcs().await];
    // Two of three are needed while one is lost, and a busy Azurite can be silent for several seconds.
    let timings = timings(15_000, 10_000, 1_200);
    let mut cluster = Cluster::start_with(Site::Clouds(clouds), Vec::new(), 2, timings, None).await;
    let leads = |report: &Report| matches!(report, Report::Inside { .. });
    let Report::Inside { token: first, .. } = cluster.wait_for("a leader", leads).await else { unreachable!() };
    for part in 0..cluster.parts() {
        renewed_everywhere(&cluster).await;
        cluster.lose_part(part, Loss::CutOff(Fault::new(Delivery::Never, Reply::Silence)));
        let lost_at = SystemClock.now();
        // The leader has renewed its lease without the part, because no renewal of before keeps it for so long.
        let deadline = cluster.timings().renew_deadline();
        let goes_on = |report: &Report| matches!(report, Report::Inside { at, .. } if *at >= lost_at + deadline);
        let Report::Inside { token, .. } = cluster.wait_for("a leader without one part", goes_on).await else {
            unreachable!()
        };
        assert_eq!(token, first, "the term ended with part {part}");
        cluster.find_part(part).await;
    }
    renewed_everywhere(&cluster).await;
    cluster.let_all_go().await;
    cluster.clear().await;
}

/// Waits until the leader renews its lease in every part. While another contender holds one of three, the loss of any other part
/// takes the majority away.
async fn renewed_everywhere(cluster: &Cluster) {
    let leader = cluster.leader().expect("it has just said that it leads");
    for proxy in cluster.proxies(leader) {
        let before = proxy.inspect_traffic(<[_]>::len);
        let is_renewal = |exchange: &Exchange| exchange.kind == Kind::Renewal && exchange.committed();
        proxy.wait_for("the leader renews", |traffic| traffic[before..].iter().any(is_renewal)).await;
    }
}

async fn contest(site: Site) {
    let rounds = std::env::var(ROUNDS_VARIABLE).map_or(ROUNDS, |rounds| rounds.parse().expect("a number"));
    let mut random = random();
    let mut cluster = Cluster::start(site, CONTENDERS).await;
    chaos::reign(&mut cluster, &mut random, rounds).await;
    end(cluster).await;
}

/// Lets contenders compete on servers of their own for as long as a variable says.
async fn siege(hosts: Vec<Host>) {
    let seconds = std::env::var(SECONDS_VARIABLE).map_or(SECONDS, |seconds| seconds.parse().expect("a number"));
    let time = Duration::from_secs(seconds);
    let mut random = random();
    // A leader needs two of three, so a third that writes nothing yet would be one that nobody has taken away.
    for host in &hosts {
        host.until_it_writes().await;
    }
    // A log holds about a thousand entries.
    let rest = (seconds > SECONDS).then_some(time / 600);
    let mut cluster = Cluster::start_on(hosts, CONTENDERS, timings(6000, 4000, 600), rest).await;
    let leads = |report: &Report| matches!(report, Report::Inside { .. });
    cluster.wait_for("a leader", leads).await;
    let began = SystemClock.now();
    chaos::besiege(&mut cluster, &mut random, time).await;
    cluster.calm_down().await;
    chaos::replace_leader(&mut cluster).await;
    cluster.calm_down().await;
    let span = (began, SystemClock.now());
    // The reports of windows that are open at the end.
    cluster.wait_for_more("a leader", leads).await;
    let windows = verdict::windows(&cluster.said());
    let slots: Vec<_> = windows.iter().map(|window| cluster.slot(window.process)).collect();
    let (parts, timings, tolerance) = (cluster.parts(), cluster.timings(), TOLERANCE * stretch());
    let mut troubles = cluster.troubles().clone();
    stalls::note(&mut troubles, &cluster, timings.request_timeout(), rest.unwrap_or_default());
    let writes = stalls::writes(&cluster);
    let course = Course {
        troubles: &troubles,
        writes: &writes,
        parts,
        timings,
        tolerance,
        windows: &windows,
        slots: &slots,
        span,
    };
    let Shown { problems, survived, leaderless, longest_gap, stretches } = course.show();
    println!(
        "{survived} losses of a part for a lease survived by a term; {leaderless} losses of a majority for a renew deadline; \
         {longest_gap:?} without a leader at most, in {stretches} stretches with a majority"
    );
    end(cluster).await;
    problems.iter().for_each(|problem| println!("violated: {problem}"));
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(seconds <= SECONDS || survived.min(leaderless).min(stretches) > 0, "nothing was shown");
}

/// The dice of all chaos.
fn random() -> Xoshiro256PlusPlus {
    let seed = std::env::var(SEED_VARIABLE).map_or_else(
        |_| u64::from_str_radix(&unique_name(), 16).expect("a hexadecimal number"),
        |seed| seed.parse().expect("a number"),
    );
    println!("to have the same chaos again, set {SEED_VARIABLE}={seed}");
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// Demands a leader soon after the chaos, ends the contest, and judges what was said.
async fn end(mut cluster: Cluster) {
    cluster.calm_down().await;
    let calm = SystemClock.now();
    let leads = |report: &Report| matches!(report, Report::Inside { at, .. } if *at >= calm);
    let Report::Inside { at, .. } = cluster.wait_for("a leader when all is calm", leads).await else { unreachable!() };
    // A candidate sees the last renewal at its next read, after one retry period with its jitter. The candidate
    // takes the lease one lease duration after that read.
    let timings = cluster.timings();
    let pause = timings.retry_period().mul_f64(1.0 + JITTER_FACTOR);
    let leader = cluster.said().into_iter().find(|said| leads(&said.report)).expect("it was found").process;
    let lost = stalls::lost(&cluster, cluster.slot(leader), (calm, at), pause);
    let bound = timings.lease_duration() + pause + lost + TOLERANCE * stretch();
    let waited = at.saturating_since(calm);
    assert!(waited <= bound, "a leader {waited:?} after the chaos, in which it lost {lost:?}");
    for _ in 0..3 {
        cluster.wait_for_more("the leader works", |report| matches!(report, Report::Appended { .. })).await;
    }
    cluster.let_all_go().await;

    let (said, log) = (cluster.said(), cluster.log().await);
    cluster.clear().await;
    cluster.judge();
    let problems = verdict::problems(&said, &log);
    let terms = verdict::windows(&said).len();
    println!("{terms} terms and {} entries; a leader {waited:?} after the chaos", log.len());
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(terms > 1, "nothing happened");
}
