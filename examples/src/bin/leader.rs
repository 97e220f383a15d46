//! A leader in four lines, on a lock in a directory.
//!
//! ```console
//! $ cargo run -p leaderelection-examples --bin leader -- /var/tmp/locks scheduler
//! ```

use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership, shutdown_signal,
};
use leaderelection_backends::file::FileLock;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(directory), Some(key)) = (args.next(), args.next()) else { return Err("DIRECTORY KEY".into()) };
    let lock = FileLock::from_env(&directory, key).await?;
    let callbacks = LeaderCallbacks::new().on_start_leading(controller);
    let config = LeaderElectionConfig::builder(lock, callbacks).build()?;
    DefaultLeaderElector::new(config).campaign(shutdown_signal()).await?;
    Ok(())
}

async fn controller(leadership: Leadership) {
    println!("leading with fencing token {}", leadership.fencing_token());
    leadership.lost().await;
}
