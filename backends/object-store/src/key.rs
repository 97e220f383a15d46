//! Keys that `object_store` passes on as they are.

use leaderelection::{StoreError, StoreErrorKind};
use object_store::path::Path;

/// Returns the path that is the key to the letter, or refuses the key. `object` is the name of the object for people.
pub(crate) fn path(key: &str, object: &str) -> Result<Path, StoreError> {
    match Path::parse(key) {
        Ok(path) if !key.is_empty() && path.as_ref() == key => Ok(path),
        _ => {
            let message = format!(
                "{object}: the key {key:?} would be changed by object_store; choose a key such as \
                 locks/scheduler, without empty segments, `.`, `..` and control characters"
            );
            Err(StoreError::new(StoreErrorKind::Fatal, message))
        }
    }
}

/// Returns the folder that has all keys with this prefix; `None` for the whole store.
///
/// A listing of `object_store` takes whole segments as its prefix, so the caller leaves out the rest of the folder.
pub(crate) fn folder(prefix: &str, object: &str) -> Result<Option<Path>, StoreError> {
    prefix.rsplit_once('/').map(|(folder, _)| path(folder, object)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_the_same_or_is_refused() {
        for key in ["a", "locks/scheduler", "a b", "a+b", "a%20b", "ä/☃", "a~b#c?d*e", "{a}[b]|c\\d^`", "...", ".a"]
        {
            assert_eq!(path(key, "store").unwrap().as_ref(), key);
        }
        for key in ["", "/", "/a", "a/", "a//b", ".", "..", "a/./b", "a/../b", "a\nb", "a\u{7f}"] {
            let error = path(key, &format!("store: {key}")).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Fatal, "{key:?}");
            assert!(error.to_string().contains(&format!("the key {key:?} would be changed by")), "{error}");
        }
    }

    #[test]
    fn a_prefix_is_looked_for_in_its_folder() {
        let of = |prefix| folder(prefix, "store").unwrap().map(|folder| folder.to_string());
        assert_eq!(of(""), None);
        assert_eq!(of("lo"), None);
        assert_eq!(of("locks/"), Some("locks".to_owned()));
        assert_eq!(of("locks/b/sch"), Some("locks/b".to_owned()));
        assert_eq!(folder("a//b", "store").unwrap_err().kind(), StoreErrorKind::Fatal);
    }
}
