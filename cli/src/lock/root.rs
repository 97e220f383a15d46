//! The part of a store that holds a lock and its session.

use leaderelection_backends::url::Location;
#[cfg(unix)]
use leaderelection_backends::url::SequencedFileLocation;

/// The folders of a fleet's locks and sessions.
#[cfg(unix)]
const FOLDERS: [&str; 2] = ["locks", "sessions"];

/// Returns the same place in a store that also holds the sessions of the place's locks.
///
/// The URL of a file names a store that holds no more than the folder of that file. A lock of a session is at
/// PREFIX/locks/NAME, and its session at PREFIX/sessions/ID.
pub(super) fn with_sessions(location: Location) -> Location {
    let mut location = location;
    #[cfg(unix)]
    if let Location::File(file) | Location::SequencedFile(SequencedFileLocation { file, .. }) = &mut location
        && let Some((root, folder)) = split(&file.directory)
    {
        (file.key, file.directory) = (format!("{folder}/{}", file.key), root);
    }
    location
}

/// Splits the path of a directory before the last folder of a fleet.
#[cfg(unix)]
fn split(directory: &str) -> Option<(String, String)> {
    let parts: Vec<&str> = directory.strip_prefix('/')?.split('/').collect();
    let folder = parts.iter().rposition(|part| FOLDERS.contains(part))?;
    let (root, below) = parts.split_at(folder);
    // Such a part cannot be in the key of an object.
    let is_key = |part: &&str| !part.is_empty() && !part.starts_with(['.', '@']) && !part.contains('\\');
    below.iter().all(is_key).then(|| (format!("/{}", root.join("/")), below.join("/")))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_store_of_a_file_holds_the_sessions_too() {
        for (directory, split_at) in [
            ("/srv/shards/locks", Some(("/srv/shards", "locks"))),
            ("/srv/shards/sessions", Some(("/srv/shards", "sessions"))),
            ("/srv/locks/shards/locks/worker", Some(("/srv/locks/shards", "locks/worker"))),
            ("/locks", Some(("/", "locks"))),
            ("/srv/shards", None),
            ("/srv/deadlocks", None),
            ("/srv/locks/.hidden", None),
            ("/srv/locks//a", None),
        ] {
            let expected = split_at.map(|(root, folder)| (root.to_owned(), folder.to_owned()));
            assert_eq!(split(directory), expected, "{directory}");
        }
    }

    #[test]
    fn the_url_stays_the_same() {
        for url in ["file:///srv/shards/locks/a", "file:///locks/a%20b", "memory:locks/a", "file:///srv/a"] {
            let location: Location = url.parse().unwrap();
            assert_eq!(with_sessions(location).to_string(), url);
        }
    }
}
