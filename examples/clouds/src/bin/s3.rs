//! A leader on Amazon S3, or on a compatible store.
//!
//! ```console
//! $ cargo run -p leaderelection-cloud-examples --bin s3 -- my-bucket locks/example
//! $ AWS_ENDPOINT_URL=http://127.0.0.1:9000 cargo run -p leaderelection-cloud-examples --bin s3 -- my-bucket locks/example
//! ```

use clap::Parser;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership, ObjectStoreBasedLock, Timings,
    shutdown_signal,
};
use leaderelection_s3::S3Lock;

/// Leads by a lock in Amazon S3. The AWS SDK finds region, endpoint and credentials.
#[derive(Debug, Parser)]
struct Args {
    bucket: String,
    key: String,
    #[command(flatten)]
    timings: Timings,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Args { bucket, key, timings } = Args::parse();
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let lock = S3Lock::from_env(&bucket, key).await?;
    println!("competing for {} as {}", lock.describe(), lock.identity());
    let callbacks = LeaderCallbacks::new()
        .on_start_leading(controller)
        .on_stop_leading(|| println!("stopped leading"))
        .on_new_leader(|leader| println!("{leader} leads"));
    let config = LeaderElectionConfig::builder(lock, callbacks).timings(timings).build()?;
    Ok(DefaultLeaderElector::new(config).campaign(shutdown_signal()).await?)
}

async fn controller(leadership: Leadership) {
    println!("leading with fencing token {}", leadership.fencing_token());
    leadership.lost().await;
}
