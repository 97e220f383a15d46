//! A program that counts the connections and requests of idle processes on each store, as a table.

use std::path::PathBuf;

use clap::Parser;

#[derive(Debug, Parser)]
struct Arguments {
    /// The number of renewals for which is counted: an hour has 1,800
    #[arg(long, default_value_t = 1800)]
    renewals: usize,
    /// The retry period in milliseconds: a short one makes an hour short
    #[arg(long, default_value_t = 2000)]
    retry: u64,
    /// The program `contender`, such as one of another version
    #[arg(long)]
    contender: Option<PathBuf>,
    /// The directory in which the servers are installed
    #[arg(long, default_value = "target/tmp")]
    directory: PathBuf,
}

#[cfg(unix)]
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    use leaderelection_integration_tests::connections::count;
    use leaderelection_integration_tests::servers::unique_name;
    use leaderelection_integration_tests::timings;

    let Arguments { renewals, retry, contender, directory } = Arguments::parse();
    let program = match contender {
        Some(program) => program,
        None => std::env::current_exe()?.with_file_name("contender"),
    };
    anyhow::ensure!(program.exists(), "{} is missing; build it: --bin contender", program.display());
    // The servers run in directories of their own.
    let installed = std::path::absolute(directory)?;
    let own = installed.join(format!("connections-{}", unique_name()));
    std::fs::create_dir_all(&own)?;
    let counted = count(&program, timings(15_000, 10_000, retry), renewals, &installed, &own).await;
    println!("| {renewals} renewals | leader: requests | connections | follower: requests | connections |");
    println!("|---|---|---|---|---|");
    for counted in counted {
        let (leader, follower) = (counted.leader, counted.follower);
        println!(
            "| {} | {} | {} | {} | {} |",
            counted.store, leader.requests, leader.connections, follower.requests, follower.connections
        );
    }
    std::fs::remove_dir_all(own)?;
    Ok(())
}

#[cfg(not(unix))]
fn main() {
    eprintln!("this program starts processes, and knows how on Unix only");
}
