//! Kubeconfigs: the place of the cluster, and who asks it.

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use leaderelection_backends::kubernetes::LeaseStore;

use crate::runtime::wait;

pub(super) fn kubeconfig(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let Ok(mut read) = Kubeconfig::from_yaml(text) else { return };
    // Whoever writes these chooses programs and files of this machine, which no target may run or open.
    for user in read.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        (user.exec, user.auth_provider) = (None, None);
        (user.client_certificate, user.client_key, user.token_file) = (None, None, None);
    }
    for cluster in read.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.certificate_authority = None;
    }
    let Ok(config) = wait(Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())) else { return };
    let namespace = config.default_namespace.clone();
    if let Err(error) = wait(async { LeaseStore::new(config, namespace) }) {
        assert!(error.to_string().chars().count() < 1_000, "an error repeats the kubeconfig: {error}");
    }
}
