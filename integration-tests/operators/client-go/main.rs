//! The operator of comparison/drivers/go/small-operator: every second, the leader writes its name into a ConfigMap.

mod work; // Yours, with `reconcile`.

use std::time::Duration;

use kube::Client;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership, shutdown_signal,
};
use leaderelection_kubernetes::{KubernetesLeaseLock, LeaseLocation};
use tokio::time::sleep;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Client::try_default().await?;
    let pod = std::env::var("POD_NAME")?;
    let lease: LeaseLocation = "lease://default/operator".parse()?;
    let lock = KubernetesLeaseLock::new(lease.open().await?, "operator", pod.clone());
    let callbacks = LeaderCallbacks::new()
        .on_start_leading(move |leadership| run(client.clone(), pod.clone(), leadership))
        .on_new_leader(|leader| println!("{leader} leads"))
        .exit_on_loss();
    let config = LeaderElectionConfig::builder(lock, callbacks)
        .lease_duration(Duration::from_secs(15))
        .renew_deadline(Duration::from_secs(10))
        .retry_period(Duration::from_secs(2))
        .build()?;
    DefaultLeaderElector::new(config).campaign(shutdown_signal()).await?;
    Ok(())
}

async fn run(client: Client, pod: String, leadership: Leadership) {
    while leadership.is_valid() {
        if let Err(error) = work::reconcile(&client, &pod).await {
            eprintln!("{error}");
        }
        tokio::select! {
            _ = leadership.lost() => {}
            () = sleep(Duration::from_secs(1)) => {}
        }
    }
}
