//! A program that measures the time in which the locks of a killed process are taken by others, on a real S3 server.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use leaderelection::Timings;

#[derive(Debug, Parser)]
enum Arguments {
    /// Kill a process that leads all locks, and print the times of the takeovers
    Measure {
        /// The number of locks
        #[arg(long, default_value_t = 1_000)]
        locks: usize,
        /// The number of crashes
        #[arg(long, default_value_t = 5)]
        crashes: u32,
        /// The directory in which the server is installed
        #[arg(long, default_value = "target/tmp")]
        directory: PathBuf,
        /// The program of the processes. The default is this one
        #[arg(long)]
        program: Option<PathBuf>,
    },
    /// Be one of the processes
    #[cfg(unix)]
    #[command(hide = true)]
    Member(leaderelection_integration_tests::crash::member::MemberArgs),
}

/// The time after the lease in which all locks are to be taken.
const GRACE: Duration = Duration::from_secs(2);

#[cfg(unix)]
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<ExitCode> {
    use leaderelection_integration_tests::crash::{BUCKET, Crash, member};
    use leaderelection_integration_tests::servers::seaweedfs::SeaweedFs;

    let (locks, crashes, directory, program) = match Arguments::parse() {
        Arguments::Member(args) => return member::take_part(args).await.map(|()| ExitCode::SUCCESS),
        Arguments::Measure { locks, crashes, directory, program } => (locks, crashes, directory, program),
    };
    let program = program.map_or_else(std::env::current_exe, Ok)?;
    // The server runs in a directory of its own.
    let server = SeaweedFs::start(&std::path::absolute(directory)?);
    server.create_bucket(BUCKET).await;
    let timings = Timings::default();
    let bound = timings.lease_duration() + GRACE;
    let mut in_time = true;
    for _ in 0..crashes {
        let takeover = Crash { program: program.clone(), locks, timings }.happen(&server).await;
        println!("{takeover}");
        in_time &= takeover.last <= bound;
    }
    println!("{} within {bound:?}", if in_time { "all" } else { "not all" });
    Ok(if in_time { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    eprintln!("this program kills processes, and knows how on Unix only");
    ExitCode::FAILURE
}
