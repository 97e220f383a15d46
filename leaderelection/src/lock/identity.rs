//! The identity of a candidate.

use crate::timings::config_error::ConfigError;
use crate::util::{names, random};

/// The maximum length of an identity, in bytes.
pub const MAX_IDENTITY_BYTES: usize = 256;

/// An identity that no other process has: the host's name, `_`, and a random UUID.
///
/// Every call returns a new identity. Keep the identity for the life of the process and do not store it: a
/// restarted process is another candidate.
///
/// ```
/// let identity = leaderelection::unique_identity();
/// assert_ne!(identity, leaderelection::unique_identity());
/// ```
#[must_use]
pub fn unique_identity() -> String {
    const LONGEST_HOST: usize = 128;
    let mut identity = String::new();
    for c in gethostname::gethostname().to_string_lossy().chars().filter(|c| !names::is_hidden(*c) && *c != ' ') {
        if identity.len() + c.len_utf8() > LONGEST_HOST {
            break;
        }
        identity.push(c);
    }
    identity + &format!("_{}", random::uuid())
}

/// Fails if `name` is not valid as an identity. The same limits apply to the names of services and jobs.
pub(crate) fn check(setting: &'static str, name: &str) -> Result<(), ConfigError> {
    let invalid = |problem| Err(ConfigError::new(setting, format!("({:?}) {problem}", excerpt(name))));
    problem_with(name).map_or(Ok(()), invalid)
}

/// Shortens an identity for an error message.
pub(crate) fn excerpt(identity: &str) -> String {
    identity.chars().take(40).collect()
}

/// The problem with an identity, if there is one.
pub(crate) fn problem_with(identity: &str) -> Option<String> {
    if identity.is_empty() {
        return Some("is empty".to_owned());
    }
    if identity.len() > MAX_IDENTITY_BYTES {
        return Some(format!("has {} bytes, more than {MAX_IDENTITY_BYTES}", identity.len()));
    }
    // Docker's `--env-file` keeps quotation marks that a shell removes, so two hosts would have two names for one job.
    let in_quotes = |mark| identity.len() > 1 && identity.starts_with(mark) && identity.ends_with(mark);
    if let Some(mark) = ['"', '\''].into_iter().find(|mark| in_quotes(*mark)) {
        return Some(format!("stands in quotation marks ({mark}); leave them out"));
    }
    names::problem_with(identity)
}
