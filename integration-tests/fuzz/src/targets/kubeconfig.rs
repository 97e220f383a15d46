//! Kubeconfigs: the place of the cluster, and who asks it.

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use leaderelection_backends::kubernetes::LeaseStore;

use crate::runtime::wait;
use crate::target::uncounted;

/// Makes a store from a kubeconfig. kube reads it, here as in the product: the file is the user's, and may name programs to run. kube
/// leaves the memory to the budget of its parser, serde-saphyr: up to 1,000,000 events that anchors keep, and 64 MiB of scalars.
pub(super) fn kubeconfig(input: &[u8]) {
    let made = uncounted(|| {
        let whole = config(input)?;
        if whole.auth_info.impersonate_groups.is_some() || whole.auth_info.impersonate_user_extra.is_some() {
            store(whole.clone());
        }
        Some(without_lists(whole))
    });
    // The copy is counted, and so is what the store then frees of it.
    let Some(config) = &made else { return };
    store(config.clone());
}

fn config(input: &[u8]) -> Option<Config> {
    let mut read = Kubeconfig::from_yaml(str::from_utf8(input).ok()?).ok()?;
    // Whoever writes these chooses programs and files of this machine, which no target may run or open.
    for user in read.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        (user.exec, user.auth_provider) = (None, None);
        (user.client_certificate, user.client_key, user.token_file) = (None, None, None);
    }
    for cluster in read.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.certificate_authority = None;
    }
    wait(Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())).ok()
}

/// The same configuration without what aliases make as long as they like. kube also makes a header of each name in the lists.
fn without_lists(mut config: Config) -> Config {
    let user = &mut config.auth_info;
    (user.impersonate_groups, user.impersonate_user_extra, user.extensions) = (None, None, None);
    user.other.clear();
    config
}

fn store(config: Config) {
    let namespace = config.default_namespace.clone();
    if let Err(error) = wait(async { LeaseStore::new(config, namespace) }) {
        assert!(error.to_string().chars().count() < 1_000, "an error repeats the kubeconfig: {error}");
    }
}
