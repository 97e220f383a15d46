//! `--second-folder`: the folder from which electors move away.

use std::sync::Arc;

use leaderelection::implement::ConditionalStore;
use leaderelection_lease_api::Both;

use crate::exit::Failure;
use crate::lock::PrefixUrl;

/// Opens the store of the Leases in `new`, in which every Lease is kept in `old` too, if there is one.
pub(super) async fn open(new: &PrefixUrl, old: Option<&PrefixUrl>) -> Result<Arc<dyn ConditionalStore>, Failure> {
    let store = new.open().await?;
    let Some(url) = old else { return Ok(store) };
    if url == new {
        let message = format!(
            "--second-folder and --store are the same, {url}; name the folder that the electors move away from"
        );
        return Err(Failure::usage(message));
    }
    let old = url.open().await?;
    let folder = folder_of(new.prefix());
    let Some(namespace) = namespace_of(&old.describe("")) else {
        let prefix = folder_of(url.prefix());
        let keys = move |key: &str| key.strip_prefix(&folder).map(|place| format!("{prefix}{place}"));
        return Ok(Arc::new(Both::new(old, store, keys)));
    };
    if !url.prefix().is_empty() {
        let message = format!("--second-folder {url} is not a namespace; expected one such as lease://{namespace}/");
        return Err(Failure::usage(message));
    }
    let folder = format!("{folder}{namespace}/");
    Ok(Arc::new(Both::new(old, store, move |key| key.strip_prefix(&folder).map(str::to_owned))))
}

/// The namespace of a store that is Leases of a cluster: its objects have no folders.
fn namespace_of(described: &str) -> Option<String> {
    described.strip_prefix("lease://")?.split('/').next().map(str::to_owned)
}

/// The prefix of a folder.
pub(super) fn folder_of(prefix: &str) -> String {
    if prefix.is_empty() || prefix.ends_with('/') { prefix.to_owned() } else { format!("{prefix}/") }
}
