//! A leader on Google Cloud Storage.
//!
//! ```console
//! $ gcloud auth application-default login
//! $ cargo run -p leaderelection-cloud-examples --bin gcs -- my-bucket locks/example
//! $ STORAGE_EMULATOR_HOST=127.0.0.1:4443 cargo run -p leaderelection-cloud-examples --bin gcs -- my-bucket locks/example
//! ```

use clap::Parser;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership, ObjectStoreBasedLock, Timings,
    shutdown_signal,
};
use leaderelection_gcs::GcsLock;

/// Leads by a lock in Google Cloud Storage, with Google's application default credentials.
#[derive(Debug, Parser)]
struct Args {
    bucket: String,
    object: String,
    #[command(flatten)]
    timings: Timings,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Args { bucket, object, timings } = Args::parse();
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let lock = GcsLock::from_env(&bucket, object).await?;
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
