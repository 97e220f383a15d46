//! Leads by the lock that its argument names, once.

use std::error::Error;

use leaderelection::{DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, ObjectLock, shutdown_signal};
use leaderelection_s3::S3Location;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let location: S3Location = std::env::args().nth(1).ok_or("no URL is given")?.parse()?;
    let lock = ObjectLock::new(location.open().await?, location.key, "s3-ring");
    let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).build()?;
    let work = |leadership: leaderelection::Leadership| async move {
        println!("s3-ring leads with token {}", leadership.fencing_token());
    };
    DefaultLeaderElector::new(config).run_while_leading(shutdown_signal(), work).await?;
    Ok(())
}
