//! A small operator on kubert: every second, two controllers of the claimant write its name into ConfigMaps.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership, shutdown_signal,
};
use leaderelection_kubernetes::{KubernetesLeaseLock, LeaseLocation};
use serde_json::json;
use tokio::time::sleep;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Client::try_default().await?;
    let pod = std::env::var("POD_NAME")?;
    let lease: LeaseLocation = "lease://default/operator".parse()?;
    let lock = KubernetesLeaseLock::new(lease.open().await?, "operator", pod.clone());
    let callbacks = LeaderCallbacks::new()
        .on_start_leading(move |leadership| lead(client.clone(), pod.clone(), leadership))
        .on_new_leader(|leader| println!("{leader} leads"));
    let config = LeaderElectionConfig::builder(lock, callbacks)
        .lease_duration(Duration::from_secs(30))
        .renew_deadline(Duration::from_secs(20))
        .retry_period(Duration::from_secs(4))
        .build()?;
    DefaultLeaderElector::new(config).campaign(shutdown_signal()).await?;
    Ok(())
}

async fn lead(client: Client, pod: String, leadership: Leadership) -> kube::Result<()> {
    let controller = |map| controller(&client, &pod, map, &leadership);
    tokio::try_join!(controller("operator"), controller("status"))?;
    Ok(())
}

async fn controller(client: &Client, pod: &str, map: &str, leadership: &Leadership) -> kube::Result<()> {
    while leadership.is_valid() {
        reconcile(client, pod, map).await?;
        tokio::select! {
            _ = leadership.lost() => {}
            () = sleep(Duration::from_secs(1)) => {}
        }
    }
    Ok(())
}

async fn reconcile(client: &Client, pod: &str, map: &str) -> kube::Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let patch = Patch::Merge(json!({"data": {"reconciled-by": pod}}));
    maps.patch(map, &PatchParams::default(), &patch).await?;
    Ok(())
}
