//! A program that measures the time from one leader to the next, and the requests of a leader and its followers. A lost term
//! while nothing happens ends it.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

#[derive(Debug, Parser)]
struct Arguments {
    /// The number of leaders that are stopped
    #[arg(long, default_value_t = 100)]
    handovers: usize,
    /// The number of leaders that are killed
    #[arg(long, default_value_t = 50)]
    crashes: usize,
    /// The number of locks, with three processes each, that are measured at the same time
    #[arg(long, default_value_t = 5)]
    locks: usize,
    /// The seconds for which requests are counted
    #[arg(long, default_value_t = 120)]
    count: u64,
    /// The lease in milliseconds; the other timings have the shape of client-go's
    #[arg(long, default_value_t = 15_000)]
    lease: u64,
    /// The place of the locks
    #[arg(long, value_enum, default_value = "seaweedfs")]
    on: On,
    /// Let followers get messages from the leader
    #[arg(long)]
    peers: bool,
    /// The directory in which the server is installed
    #[arg(long, default_value = "target/tmp")]
    directory: PathBuf,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum On {
    /// A bucket of SeaweedFS
    Seaweedfs,
    /// A directory bucket of S3 that the tests play
    Express,
    /// A local directory
    Directory,
}

#[cfg(unix)]
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    use leaderelection_integration_tests::servers::express::Express;
    use leaderelection_integration_tests::servers::seaweedfs::{BUCKET, SeaweedFs};
    use leaderelection_integration_tests::servers::unique_name;
    use leaderelection_integration_tests::takeover::{Fleet, Site, print};
    use leaderelection_integration_tests::timings;
    use tokio::task::JoinSet;

    let Arguments { handovers, crashes, locks, count, lease, on, peers, directory } = Arguments::parse();
    let program = std::env::current_exe()?.with_file_name("contender");
    anyhow::ensure!(program.exists(), "{} is missing; build it: --bin contender", program.display());
    // The server runs in a directory of its own.
    let directory = std::path::absolute(directory)?;
    let server = SeaweedFs::start(&directory);
    server.create_bucket(BUCKET).await;
    let gateway = Express::start(&server, Duration::from_secs(300)).await;
    let site = match on {
        On::Seaweedfs => Site::seaweedfs(&server),
        On::Express => Site::express(&gateway),
        On::Directory => {
            let own = directory.join(format!("takeover-{}", unique_name()));
            std::fs::create_dir(&own)?;
            Site::Directory(own)
        }
    };
    let timings = timings(lease, lease * 2 / 3, lease * 2 / 15);
    println!("{on:?}, {timings:?}");

    let mut fleets = JoinSet::new();
    for _ in 0..locks {
        let mut fleet = Fleet::start(program.clone(), timings, &site, peers).await;
        fleets.spawn(async move {
            let requests = fleet.count(Duration::from_secs(count)).await;
            let (mut handed, mut taken) = (Vec::new(), Vec::new());
            for _ in 0..handovers.div_ceil(locks) {
                handed.push(fleet.hand_over().await);
            }
            for _ in 0..crashes.div_ceil(locks) {
                taken.push(fleet.crash().await);
            }
            (requests, handed, taken)
        });
    }
    let (mut handed, mut taken) = (Vec::new(), Vec::new());
    while let Some(measured) = fleets.join_next().await {
        let (requests, handed_here, taken_here) = measured?;
        let an_hour = |requests: usize| requests as u64 * 3600 / count.max(1);
        let followers: Vec<_> = requests.followers.iter().copied().map(an_hour).collect();
        println!("requests an hour: leader {}, followers {followers:?}", an_hour(requests.leader));
        handed.extend(handed_here);
        taken.extend(taken_here);
    }
    print("from the signal to the next leader's work", handed, Duration::ZERO);
    print("from the last renewal to the next leader's work, beyond the lease", taken, timings.lease_duration());
    Ok(())
}

#[cfg(not(unix))]
fn main() {
    eprintln!("this program kills processes, and knows how on Unix only");
}
