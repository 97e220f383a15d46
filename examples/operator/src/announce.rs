//! The arguments for what Kubernetes shows of the leader.

use kube::Config;
use leaderelection::StoreError;
use leaderelection_backends::kubernetes::Announcer;
use leaderelection_operator_example::ElectedOn;

/// The Events about the election, and the label of the leader's pod.
#[derive(Debug, clap::Args)]
pub(super) struct Announce {
    /// The name of this pod. An election without a Lease has its Events there.
    #[arg(long, env = "POD_NAME", value_name = "NAME")]
    pod: Option<String>,
    /// The label of this pod while it leads, for a Service that routes to the leader.
    #[arg(long, env = "OPERATOR_POD_LABEL", value_name = "KEY=VALUE", requires = "pod", value_parser = label)]
    pod_label: Option<(String, String)>,
}

impl Announce {
    pub(super) fn announcer(self, config: Config, elected_on: &ElectedOn) -> Result<Announcer, StoreError> {
        let announcer = Announcer::new(config)?;
        let announcer = match (elected_on.lease(), &self.pod) {
            (Some(lease), _) => announcer.events_on_lease(&lease.namespace, &lease.key),
            (None, Some(pod)) => announcer.events_on_pod(pod),
            (None, None) => announcer,
        };
        Ok(match (self.pod, self.pod_label) {
            (Some(pod), Some((key, value))) => announcer.label_pod(pod, key, value),
            _ => announcer,
        })
    }
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("no label; write KEY=VALUE, such as operator.example/role=leader")?;
    Ok((key.to_owned(), value.to_owned()))
}
