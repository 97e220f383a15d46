//! The keys of a fleet's objects: `PREFIX/sessions/ID` and `PREFIX/locks/NAME`.

/// The folder of the sessions.
pub(crate) const SESSIONS: &str = "sessions";
/// The folder of the locks.
pub(crate) const LOCKS: &str = "locks";

/// Returns the key of an object. If `name` is empty, returns what all keys in the folder begin with.
pub(crate) fn key(prefix: &str, folder: &str, name: &str) -> String {
    if prefix.is_empty() { format!("{folder}/{name}") } else { format!("{prefix}/{folder}/{name}") }
}

/// The most prefixes to try for one key. Each costs a read, and anyone who can write a lock chooses its key.
const MOST_PREFIXES: usize = 4;

/// Returns the prefixes under which `key` can be the key of a lock, likeliest first. There may be several, because the name of a lock may
/// contain `/locks/`. Only the last folders called `locks` are tried.
pub(crate) fn prefixes_of_lock(key: &str) -> impl Iterator<Item = &str> {
    let folders = key.rmatch_indices('/').filter_map(|(end, _)| key[..end].strip_suffix(LOCKS));
    let folders = folders.filter(|before| before.is_empty() || before.ends_with('/'));
    folders.map(|before| before.trim_end_matches('/')).take(MOST_PREFIXES)
}

/// Returns the prefix and the ID of the session at `key`; `None` if no session can have this key.
pub(crate) fn session_of(key: &str) -> Option<(&str, &str)> {
    let (folder, id) = key.rsplit_once('/')?;
    let prefix = folder.strip_suffix(SESSIONS)?;
    let is_folder = prefix.is_empty() || prefix.ends_with('/');
    (is_folder && !id.is_empty()).then(|| (prefix.trim_end_matches('/'), id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_of_a_lock_is_found_in_its_key() {
        for (lock, prefixes) in [
            ("locks/a", &[""][..]),
            ("team/shards/locks/a", &["team/shards"]),
            ("locks/shards/locks/a", &["locks/shards", ""]),
            ("shards/locks/a/b", &["shards"]),
            ("shards/deadlocks/a", &[]),
            ("locks", &[]),
            (
                "locks/locks/locks/locks/locks/a",
                &["locks/locks/locks/locks", "locks/locks/locks", "locks/locks", "locks"],
            ),
        ] {
            assert_eq!(prefixes_of_lock(lock).collect::<Vec<_>>(), prefixes, "{lock}");
        }
    }

    #[test]
    fn the_key_of_a_session_is_told_from_others() {
        assert_eq!(session_of("sessions/1"), Some(("", "1")));
        assert_eq!(session_of("team/shards/sessions/1"), Some(("team/shards", "1")));
        for key in ["sessions", "sessions/", "obsessions/1", "sessions/1/2", "locks/1"] {
            assert_eq!(session_of(key), None, "{key}");
        }
        for prefix in ["", "team/shards"] {
            assert_eq!(session_of(&key(prefix, SESSIONS, "1")), Some((prefix, "1")));
            assert_eq!(prefixes_of_lock(&key(prefix, LOCKS, "1")).next(), Some(prefix));
        }
    }
}
