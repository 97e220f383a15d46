//! A small operator on kubert: every second, two controllers of the claimant write its name into ConfigMaps.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use kubert::lease::{Claim, ClaimParams, LeaseManager};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Client::try_default().await?;
    let pod = std::env::var("POD_NAME")?;
    let leases: Api<Lease> = Api::namespaced(client.clone(), "default");
    let manager = LeaseManager::init(leases, "operator").await?;
    let (claims, lease) = manager.spawn(&pod, ClaimParams::default()).await?;
    let mut controllers = JoinSet::new();
    for map in ["operator", "status"] {
        controllers.spawn(controller(client.clone(), pod.clone(), map, claims.clone()));
    }
    signal(SignalKind::terminate())?.recv().await;
    controllers.shutdown().await;
    drop(claims);
    lease.await??;
    Ok(())
}

async fn controller(client: Client, pod: String, map: &str, claims: watch::Receiver<Arc<Claim>>) -> kube::Result<()> {
    loop {
        if claims.borrow().is_current_for(&pod) {
            reconcile(&client, &pod, map).await?;
        }
        sleep(Duration::from_secs(1)).await;
    }
}

async fn reconcile(client: &Client, pod: &str, map: &str) -> kube::Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let patch = Patch::Merge(json!({"data": {"reconciled-by": pod}}));
    maps.patch(map, &PatchParams::default(), &patch).await?;
    Ok(())
}
