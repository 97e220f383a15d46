//! The refusal of a configuration.

use std::fmt;

/// The name of an invalid field of a configuration, and the problem with its value.
///
/// `Debug` is the same text, because that is what a `main` prints that returns the error.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct ConfigError {
    field: &'static str,
    problem: String,
    others: &'static [&'static str],
}

impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl ConfigError {
    /// Refuses the value of `field`. The problem is the rest of a sentence that begins with the name of the field.
    #[must_use]
    pub fn new(field: &'static str, problem: impl Into<String>) -> Self {
        Self { field, problem: problem.into(), others: &[] }
    }

    /// Adds the other fields of which the problem speaks, by their names.
    pub(crate) fn beside(self, others: &'static [&'static str]) -> Self {
        Self { others, ..self }
    }

    /// The name of the invalid field.
    #[must_use]
    pub fn field(&self) -> &str {
        self.field
    }

    /// The text of this error for people who know the fields by other names, such as those of options. `name` returns `None`
    /// for a field that has no other.
    #[must_use]
    pub fn in_words(&self, name: impl Fn(&str) -> Option<String>) -> String {
        let of = |field: &str| name(field).unwrap_or_else(|| field.to_owned());
        let problem = self.others.iter().fold(self.problem.clone(), |text, field| text.replacen(field, &of(field), 1));
        format!("{} {problem}", of(self.field))
    }
}
