//! An operator with its own version of kube, which leads by a Lease and reads that Lease by its own client.

use std::error::Error;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use leaderelection::{DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership, shutdown_signal};
use leaderelection_kubernetes::{KubernetesLeaseLock, LeaseLocation};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let identity = std::env::args().nth(1).ok_or("no identity is given")?;
    let leases: Api<Lease> = Api::default_namespaced(Client::try_default().await?);
    let location: LeaseLocation = "lease:///operators".parse()?;
    let lock = KubernetesLeaseLock::new(location.open().await?, "operators", identity);
    let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).build()?;
    let work = |leadership: Leadership| async move {
        let lease = leases.get("operators").await?;
        let holder = lease.spec.and_then(|spec| spec.holder_identity);
        println!("{} leads with token {}", holder.unwrap_or_default(), leadership.fencing_token());
        Ok::<_, kube::Error>(())
    };
    DefaultLeaderElector::new(config).run_while_leading(shutdown_signal(), work).await??;
    Ok(())
}
