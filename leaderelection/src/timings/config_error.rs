//! The refusal of a configuration.

/// The name of an invalid field of a configuration, and the problem with its value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct ConfigError {
    field: &'static str,
    problem: String,
}

impl ConfigError {
    pub(crate) fn new(field: &'static str, problem: impl Into<String>) -> Self {
        Self { field, problem: problem.into() }
    }

    /// The name of the invalid field.
    #[must_use]
    pub fn field(&self) -> &str {
        self.field
    }
}
