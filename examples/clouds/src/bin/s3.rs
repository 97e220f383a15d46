//! A leader on Amazon S3, or on a compatible store.
//!
//! ```console
//! $ cargo run -p leaderelection-cloud-examples --bin s3 -- my-bucket locks/example
//! $ AWS_ENDPOINT_URL=http://127.0.0.1:9000 cargo run -p leaderelection-cloud-examples --bin s3 -- my-bucket locks/example
//! ```

use clap::Parser;
use leaderelection_backends::s3::S3Lock;
use leaderelection_examples::timing::Timing;
use leaderelection_examples::{lead, logs};

/// Leads by a lock in Amazon S3. The AWS SDK finds region, endpoint and credentials.
#[derive(Debug, Parser)]
struct Args {
    bucket: String,
    key: String,
    #[command(flatten)]
    timing: Timing,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Args { bucket, key, timing } = Args::parse();
    logs::to_stderr();
    lead::until_signalled(S3Lock::from_env(&bucket, key).await?, timing).await
}
