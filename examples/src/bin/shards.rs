//! A hundred shards, spread over any number of processes, for the price of one election per process.
//!
//! ```console
//! $ cargo run -p leaderelection-examples --bin shards -- file:///var/tmp/shards
//! ```
//!
//! Start the same command in further terminals. Nobody knows the members in advance: a member that joins gets its share
//! of the shards, and the shards of a member that leaves or dies go to the others. All shards of a process are held by one
//! session, so the process renews one object, however many shards it leads.

use clap::Parser;
use leaderelection::{LeaderCallbacks, Session, Timings, shutdown_signal, unique_identity};
use leaderelection_backends::url::Location;
use tokio::sync::watch;

/// Leads its share of many shards.
#[derive(Debug, Parser)]
struct Args {
    /// The prefix of all objects, such as file:///var/tmp/shards or s3://bucket/shards.
    prefix: Location,
    /// The name of this process among the members. The default is a new name for each start.
    #[arg(long, default_value_t = unique_identity())]
    member: String,
    /// The number of shards.
    #[arg(long, default_value_t = 100)]
    shards: usize,
    /// The share of this member, compared with the weights of the others.
    #[arg(long, default_value_t = 1)]
    weight: u32,
    #[command(flatten)]
    timings: Timings,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let shutdown = shutdown_signal();
    let session = Session::builder(args.prefix.open().await?, args.prefix.key(), &args.member)
        .timings(args.timings)
        .weight(args.weight)
        .balance(true)
        .build()?;

    let (held, mut holding) = watch::channel(0_usize);
    let callbacks = |_: &str| {
        let (gained, lost) = (held.clone(), held.clone());
        LeaderCallbacks::new()
            .on_start_leading(move |leadership| {
                gained.send_modify(|held| *held += 1);
                async move { leadership.lost().await }
            })
            .on_stop_leading(move || lost.send_modify(|held| *held -= 1))
    };
    let running = session.lead_all((0..args.shards).map(|shard| format!("{shard:03}")), callbacks, shutdown);
    tokio::pin!(running);
    loop {
        tokio::select! {
            ended = &mut running => return Ok(ended?),
            Ok(()) = holding.changed() => {
                println!("{} holds {} of {}", args.member, *holding.borrow_and_update(), args.shards);
            }
        }
    }
}
