//! A leader on Google Cloud Storage.
//!
//! ```console
//! $ gcloud auth application-default login
//! $ cargo run -p leaderelection-cloud-examples --bin gcs -- my-bucket locks/example
//! $ STORAGE_EMULATOR_HOST=127.0.0.1:4443 cargo run -p leaderelection-cloud-examples --bin gcs -- my-bucket locks/example
//! ```

use clap::Parser;
use leaderelection_backends::gcs::GcsLock;
use leaderelection_examples::timing::Timing;
use leaderelection_examples::{lead, logs};

/// Leads by a lock in Google Cloud Storage, with Google's application default credentials.
#[derive(Debug, Parser)]
struct Args {
    bucket: String,
    object: String,
    #[command(flatten)]
    timing: Timing,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Args { bucket, object, timing } = Args::parse();
    logs::to_stderr();
    lead::until_signalled(GcsLock::from_env(&bucket, object).await?, timing).await
}
