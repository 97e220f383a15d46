//! A small operator on kube-leader-election: every second, the leader writes its name into a ConfigMap.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use kube_leader_election::{LeaseLock, LeaseLockParams, LeaseLockResult};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Client::try_default().await?;
    let pod = std::env::var("POD_NAME")?;
    let is_leader = Arc::new(AtomicBool::new(false));
    let params =
        LeaseLockParams { holder_id: pod.clone(), lease_name: "operator".into(), lease_ttl: Duration::from_secs(15) };
    let lock = Arc::new(LeaseLock::new(client.clone(), "default", params));
    tokio::spawn({
        let (lock, is_leader) = (lock.clone(), is_leader.clone());
        async move {
            loop {
                match lock.try_acquire_or_renew().await {
                    Ok(result) => is_leader.store(matches!(result, LeaseLockResult::Acquired(_)), Ordering::Relaxed),
                    Err(error) => eprintln!("{error}"),
                }
                sleep(Duration::from_secs(5)).await;
            }
        }
    });
    let mut stop = signal(SignalKind::terminate())?;
    loop {
        if is_leader.load(Ordering::Relaxed) {
            reconcile(&client, &pod).await?;
        }
        tokio::select! {
            _ = stop.recv() => break,
            () = sleep(Duration::from_secs(1)) => {}
        }
    }
    if is_leader.load(Ordering::Relaxed) {
        lock.step_down().await?;
    }
    Ok(())
}

async fn reconcile(client: &Client, pod: &str) -> kube::Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let patch = Patch::Merge(json!({"data": {"reconciled-by": pod}}));
    maps.patch("operator", &PatchParams::default(), &patch).await?;
    Ok(())
}
