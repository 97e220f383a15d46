//! A leader on Google Cloud Storage.
//!
//! ```console
//! $ gcloud auth application-default login
//! $ cargo run -p leaderelection-cloud-examples --bin gcs -- my-bucket locks/example
//! ```

use clap::Parser;
use google_cloud_auth::credentials::anonymous;
use google_cloud_storage::client::Storage;
use leaderelection::unique_identity;
use leaderelection_backends::gcs::{GcsLock, GcsStore};
use leaderelection_examples::timing::Timing;
use leaderelection_examples::{lead, logs};

/// Leads by a lock in Google Cloud Storage, with Google's application default credentials.
#[derive(Debug, Parser)]
struct Args {
    bucket: String,
    object: String,
    /// The URL of an emulator without credentials, such as http://localhost:4443.
    #[arg(long)]
    emulator: Option<String>,
    #[command(flatten)]
    timing: Timing,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Args { bucket, object, emulator, timing } = Args::parse();
    logs::to_stderr();
    let mut client = Storage::builder();
    if let Some(emulator) = emulator {
        client = client.with_endpoint(emulator).with_credentials(anonymous::Builder::new().build());
    }
    let lock = GcsLock::new(GcsStore::new(client.build().await?, bucket), object, unique_identity());
    lead::until_signalled(lock, timing).await
}
