//! A leader on Amazon S3, or on a compatible store.
//!
//! ```console
//! $ cargo run -p leaderelection-cloud-examples --bin s3 -- my-bucket locks/example
//! $ AWS_ENDPOINT_URL=http://localhost:9000 cargo run -p leaderelection-cloud-examples --bin s3 -- my-bucket locks/example --path-style
//! ```

use aws_config::BehaviorVersion;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::Builder;
use clap::Parser;
use leaderelection::unique_identity;
use leaderelection_backends::s3::{S3Lock, S3Store};
use leaderelection_examples::timing::Timing;
use leaderelection_examples::{lead, logs};

/// Leads by a lock in Amazon S3. The AWS SDK finds region, endpoint and credentials.
#[derive(Debug, Parser)]
struct Args {
    bucket: String,
    key: String,
    /// Put the bucket into the path, as most compatible stores require.
    #[arg(long)]
    path_style: bool,
    #[command(flatten)]
    timing: Timing,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Args { bucket, key, path_style, timing } = Args::parse();
    logs::to_stderr();
    let aws = aws_config::load_defaults(BehaviorVersion::latest()).await;
    let client = Client::from_conf(Builder::from(&aws).force_path_style(path_style).build());
    let lock = S3Lock::new(S3Store::new(client, bucket), key, unique_identity());
    lead::until_signalled(lock, timing).await
}
