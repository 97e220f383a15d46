//! A leader on Azure Blob Storage.
//!
//! ```console
//! $ az login
//! $ AZURE_STORAGE_ACCOUNT=account cargo run -p leaderelection-cloud-examples --bin azure -- my-container locks/example
//! ```

use clap::Parser;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership, ObjectStoreBasedLock, Timings,
    shutdown_signal,
};
use leaderelection_azure::AzureLock;

/// Leads by a lock in Azure Blob Storage, in the account of AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING.
#[derive(Debug, Parser)]
struct Args {
    container: String,
    blob: String,
    #[command(flatten)]
    timings: Timings,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Args { container, blob, timings } = Args::parse();
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let lock = AzureLock::from_env(&container, blob).await?;
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
