//! The keys that can be paths.

use leaderelection::{StoreError, StoreErrorKind};

/// Refuses a key that would leave the directory, or that would collide with the store's own files.
pub(super) fn check(key: &str, object: &str) -> Result<(), StoreError> {
    let Some(problem) = key.split('/').find_map(problem) else { return Ok(()) };
    let message = format!("{object}: the key {key:?} cannot be used: {problem}: use one such as \"locks/scheduler\"");
    Err(StoreError::new(StoreErrorKind::Fatal, message))
}

/// Returns `true` if `name` can be a part of a key.
pub(super) fn is_part(name: &str) -> bool {
    problem(name).is_none()
}

fn problem(part: &str) -> Option<&'static str> {
    if part.is_empty() {
        Some("it is empty, or begins or ends with a slash, or has two in a row")
    } else if part.starts_with(['.', '@']) {
        Some("a part of it begins with \".\" or \"@\"")
    } else if part.contains(['\\', '\0']) {
        Some("it contains a backslash or NUL")
    } else {
        None
    }
}
