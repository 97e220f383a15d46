//! A program that measures sessions on a real S3 server, behind a proxy that is as slow as Amazon's.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use leaderelection::Timings;
use leaderelection_backends::prices::Prices;
use leaderelection_integration_tests::servers::seaweedfs::{BUCKET, SeaweedFs};
use leaderelection_integration_tests::{fleet, gaps, takeover};
use tokio::runtime::Runtime;

#[derive(Debug, Parser)]
struct Arguments {
    /// The directory in which the server is installed
    #[arg(long, global = true, default_value = "target/tmp")]
    directory: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Gaps(leaderelection_proofs::gaps::Arguments),
    Processes(Processes),
    /// Be one of the processes
    #[command(hide = true)]
    Member(fleet::member::MemberArgs),
}

/// Counts the requests of idle processes, kills the one that leads all locks, and lets the others hand each lock over
#[derive(Args, Debug)]
struct Processes {
    /// The number of processes
    #[arg(long, default_value_t = 30)]
    members: usize,
    /// The number of locks
    #[arg(long, default_value_t = 1_000)]
    locks: usize,
    /// The processes send each other messages
    #[arg(long)]
    sends_messages: bool,
    /// The milliseconds that a read or a write takes longer than the server does by itself
    #[arg(long, default_value_t = 30)]
    request: u64,
    /// The milliseconds that a page of a listing takes longer
    #[arg(long, default_value_t = 250)]
    page: u64,
    /// The seconds for which requests are counted: a part of an hour
    #[arg(long, default_value_t = 600)]
    rest: u64,
    /// The number of such fleets, one after the other. Requests are counted for the first
    #[arg(long, default_value_t = 3)]
    fleets: u32,
}

fn main() -> anyhow::Result<()> {
    let Arguments { directory, command } = Arguments::parse();
    let runtime = Runtime::new()?;
    let server = || {
        // The server runs in a directory of its own.
        let server = SeaweedFs::start(&std::path::absolute(&directory)?);
        runtime.block_on(server.create_bucket(BUCKET));
        anyhow::Ok(server)
    };
    match command {
        Command::Gaps(arguments) => {
            let server = server()?;
            arguments.carry_out_on(|event, settings| runtime.block_on(gaps::measure(event, settings, &server)));
        }
        Command::Processes(processes) => runtime.block_on(processes.carry_out(&server()?))?,
        Command::Member(arguments) => runtime.block_on(fleet::member::take_part(arguments))?,
    }
    Ok(())
}

impl Processes {
    async fn carry_out(self, server: &SeaweedFs) -> anyhow::Result<()> {
        let Self { members, locks, sends_messages, request, page, rest, fleets } = self;
        let (program, timings) = (std::env::current_exe()?, Timings::default());
        let [request, page, rest] =
            [Duration::from_millis(request), Duration::from_millis(page), Duration::from_secs(rest)];
        for number in 0..fleets {
            let settings =
                fleet::Settings { program: program.clone(), members, locks, timings, sends_messages, page, request };
            let mut fleet = fleet::Fleet::start(settings, server).await;
            // A member that has joined looks around once more.
            fleet.rest(timings.lease_duration() * 3).await;
            if number == 0 && !rest.is_zero() {
                let hour = fleet.rest(rest).await;
                println!(
                    "in an hour, as in {rest:?}: {hour:?}; {:.2} dollars a month",
                    hour.dollars_a_month(&Prices::S3)
                );
            }
            println!("{}", fleet.crash().await);
            // The others read who has taken the locks, one member after the other.
            fleet.rest(timings.retry_period() * u32::try_from(members)?).await;
            let handed: Vec<_> = (0..locks).map(|lock| fleet.hand_over(lock)).collect();
            for (index, moment) in ["end of the work", "answer to the release"].into_iter().enumerate() {
                let times = handed.iter().map(|times| times[index]).collect();
                takeover::print(&format!("from the {moment} to the next leader's work"), times, Duration::ZERO);
            }
        }
        Ok(())
    }
}
