//! README's four lines of Rust, which set up no log. A wrong setting is told on standard error all the same.
//!
//! ```console
//! $ cargo run -p leaderelection-cloud-examples --bin four_lines -- my-bucket
//! ```

use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership, shutdown_signal,
};
use leaderelection_backends::s3::S3Lock;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bucket = std::env::args().nth(1).ok_or("name a bucket")?;
    let lock = S3Lock::from_env(&bucket, "locks/scheduler").await?;
    let callbacks = LeaderCallbacks::new().on_start_leading(controller);
    let config = LeaderElectionConfig::builder(lock, callbacks).build()?;
    DefaultLeaderElector::new(config).campaign(shutdown_signal()).await?; // SIGTERM and Ctrl-C end it.
    Ok(())
}

async fn controller(leadership: Leadership) {
    println!("leading; send the fencing token {} with every write", leadership.fencing_token());
    leadership.lost().await; // Returns when leadership is lost. All work must end here.
}
