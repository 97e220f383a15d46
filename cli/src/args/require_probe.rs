//! `--require-probe`, an argument of `run` and `serve`.

use leaderelection::LeaderElectionConfigBuilder;
#[cfg(unix)]
use leaderelection::SessionBuilder;
use leaderelection_conformance::ProbeFirst;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RequireProbe {
    /// Probe the store first, as `leaderelect probe` does, and elect no leader if the probe fails
    #[arg(long)]
    require_probe: bool,
}

impl RequireProbe {
    /// Requires the probe of the store, if the arguments contain the option.
    pub(crate) fn apply(&self, config: LeaderElectionConfigBuilder) -> LeaderElectionConfigBuilder {
        if self.require_probe { config.store_check(ProbeFirst::new()) } else { config }
    }

    /// Does the same for a session.
    #[cfg(unix)]
    pub(crate) fn apply_to_session(&self, session: SessionBuilder) -> SessionBuilder {
        if self.require_probe { session.store_check(ProbeFirst::new()) } else { session }
    }
}
