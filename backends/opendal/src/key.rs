//! Keys that `opendal` passes on as they are.

use leaderelection::{StoreError, StoreErrorKind};

/// Refuses a key that `opendal` would trim or shorten, or take for a folder. `object` is the name of the object for
/// people.
pub(crate) fn check(key: &str, object: &str) -> Result<(), StoreError> {
    let is_strange = |part: &str| matches!(part, "" | "." | "..");
    if key.split('/').any(is_strange) || key.trim() != key || key.contains(char::is_control) {
        let message = format!(
            "{object}: the key {key:?} would be changed by opendal; choose a key such as locks/scheduler, \
             without empty segments, `.`, `..`, control characters and white space at its ends"
        );
        return Err(StoreError::new(StoreErrorKind::Fatal, message));
    }
    Ok(())
}

/// Returns the folder that has all keys with this prefix.
pub(crate) fn folder<'a>(prefix: &'a str, object: &str) -> Result<&'a str, StoreError> {
    let Some((folder, _)) = prefix.rsplit_once('/') else { return Ok("/") };
    check(folder, object)?;
    Ok(&prefix[..=folder.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_the_same_or_is_refused() {
        for key in ["a", "locks/scheduler", "a b", "a+b", "a%20b", "ä/☃", "a~b#c?d*e", "...", ".a"] {
            check(key, "service").unwrap();
        }
        for key in ["", "/", "/a", "a/", "a//b", ".", "a/../b", " a", "a ", "a\nb"] {
            let error = check(key, "service").unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Fatal, "{key:?}");
            assert!(error.to_string().contains(&format!("the key {key:?} would be changed by")), "{error}");
        }
    }

    #[test]
    fn a_prefix_is_looked_for_in_its_folder() {
        assert_eq!(folder("", "service").unwrap(), "/");
        assert_eq!(folder("lo", "service").unwrap(), "/");
        assert_eq!(folder("locks/", "service").unwrap(), "locks/");
        assert_eq!(folder("locks/b/sch", "service").unwrap(), "locks/b/");
        assert_eq!(folder("a//b", "service").unwrap_err().kind(), StoreErrorKind::Fatal);
    }
}
