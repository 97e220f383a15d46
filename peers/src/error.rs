//! The refusal of a configuration of peers.

use std::path::Path;

/// The name of an invalid setting, and the problem with its value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting} {problem}")]
pub struct PeersError {
    setting: &'static str,
    problem: String,
}

impl PeersError {
    pub(crate) fn new(setting: &'static str, problem: impl Into<String>) -> Self {
        Self { setting, problem: problem.into() }
    }

    /// Names the file of the value.
    pub(crate) fn within(self, path: &Path) -> Self {
        Self::new(self.setting, format!("in {} {}", path.display(), self.problem))
    }

    /// The name of the invalid setting.
    #[must_use]
    pub fn setting(&self) -> &str {
        self.setting
    }
}
