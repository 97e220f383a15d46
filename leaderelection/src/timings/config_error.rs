//! The error of an invalid configuration.

use std::fmt;

/// An invalid field of a configuration, and the problem with its value.
///
/// `Debug` prints the same text as `Display`, because Rust prints an error that `main` returns with `Debug`.
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
    /// Creates the error about `field`. The problem continues a sentence that begins with the field's name.
    #[must_use]
    pub fn new(field: &'static str, problem: impl Into<String>) -> Self {
        Self { field, problem: problem.into(), others: &[] }
    }

    /// Lists the other fields that the problem mentions. [`in_words`](Self::in_words) replaces their names, too.
    pub(crate) fn beside(self, others: &'static [&'static str]) -> Self {
        Self { others, ..self }
    }

    /// The name of the invalid field.
    #[must_use]
    pub fn field(&self) -> &str {
        self.field
    }

    /// The text of this error with other names for the fields, such as those of command-line options. `name` returns
    /// the other name of a field, or `None` if there is none.
    #[must_use]
    pub fn in_words(&self, name: impl Fn(&str) -> Option<String>) -> String {
        let name_of = |field: &str| name(field).unwrap_or_else(|| field.to_owned());
        let rename = |text: String, field: &&str| text.replacen(field, &name_of(field), 1);
        let problem = self.others.iter().fold(self.problem.clone(), rename);
        format!("{} {problem}", name_of(self.field))
    }
}
