//! A leader on Azure Blob Storage.
//!
//! ```console
//! $ az login
//! $ AZURE_STORAGE_ACCOUNT=account cargo run -p leaderelection-cloud-examples --bin azure -- my-container locks/example
//! ```

use clap::Parser;
use leaderelection_backends::azure::AzureLock;
use leaderelection_examples::timing::Timing;
use leaderelection_examples::{lead, logs};

/// Leads by a lock in Azure Blob Storage, in the account of AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING.
#[derive(Debug, Parser)]
struct Args {
    container: String,
    blob: String,
    #[command(flatten)]
    timing: Timing,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Args { container, blob, timing } = Args::parse();
    logs::to_stderr();
    lead::until_signalled(AzureLock::from_env(&container, blob).await?, timing).await
}
