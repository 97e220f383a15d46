//! The work, which knows nothing of the election.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

pub(crate) async fn reconcile(client: &Client, pod: &str) -> kube::Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let patch = Patch::Merge(json!({"data": {"reconciled-by": pod}}));
    maps.patch("operator", &PatchParams::default(), &patch).await?;
    Ok(())
}
