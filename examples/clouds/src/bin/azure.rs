//! A leader on Azure Blob Storage.
//!
//! ```console
//! $ az login
//! $ cargo run -p leaderelection-cloud-examples --bin azure -- https://account.blob.core.windows.net/container locks/example
//! ```

use azure_identity::DeveloperToolsCredential;
use clap::Parser;
use leaderelection::unique_identity;
use leaderelection_backends::azure::{AzureBlobLock, AzureCredential, AzureStore};
use leaderelection_examples::timing::Timing;
use leaderelection_examples::{lead, logs};

/// Leads by a lock in Azure Blob Storage.
#[derive(Debug, Parser)]
struct Args {
    /// The container's URL, or its name if AZURE_STORAGE_CONNECTION_STRING is set.
    container: String,
    blob: String,
    #[command(flatten)]
    timing: Timing,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Args { container, blob, timing } = Args::parse();
    logs::to_stderr();
    let store = match std::env::var("AZURE_STORAGE_CONNECTION_STRING") {
        Ok(account) => AzureStore::from_connection_string(&account, &container)?,
        // A program on Azure itself uses azure_identity's ManagedIdentityCredential or
        // WorkloadIdentityCredential.
        Err(_) => AzureStore::new(&container, AzureCredential::EntraId(DeveloperToolsCredential::new(None)?))?,
    };
    lead::until_signalled(AzureBlobLock::new(store, blob, unique_identity()), timing).await
}
