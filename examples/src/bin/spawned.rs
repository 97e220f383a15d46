//! Controllers that the work spawns and does not await: the process ends when leadership is lost, and they with it.
//!
//! ```console
//! $ cargo run -p leaderelection-examples --bin spawned -- /var/tmp/locks operator
//! ```

use std::time::Duration;

use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership, shutdown_signal,
};
use leaderelection_backends::file::FileLock;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(directory), Some(key)) = (args.next(), args.next()) else { return Err("DIRECTORY KEY".into()) };
    let lock = FileLock::from_env(&directory, key).await?;
    let callbacks = LeaderCallbacks::new().on_start_leading(controllers).exit_on_loss();
    let config = LeaderElectionConfig::builder(lock, callbacks)
        .lease_duration(Duration::from_secs(9))
        .renew_deadline(Duration::from_secs(6))
        .retry_period(Duration::from_secs(1))
        .build()?;
    DefaultLeaderElector::new(config).campaign(shutdown_signal()).await?;
    Ok(())
}

async fn controllers(leadership: Leadership) {
    println!("leading with fencing token {}", leadership.fencing_token());
    for name in ["databases", "users"] {
        tokio::spawn(reconcile(name, leadership.clone()));
    }
    leadership.lost().await;
}

async fn reconcile(name: &str, leadership: Leadership) {
    loop {
        // A task of a process that was frozen may run before the process ends.
        if leadership.is_valid() {
            println!("{name} reconciled under token {}", leadership.fencing_token());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
