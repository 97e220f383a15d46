//! Finds the keys in the directory tree.

use std::io::ErrorKind;
use std::path::Path;

use leaderelection::StoreError;
use leaderelection::implement::ListedObject;
use rustix::io::Errno;

use super::directory::Directory;
use super::error::refused;
use super::key;
use super::object::{GENERATIONS, Newest, ObjectDirectory};

/// Returns all objects, and all folders that cannot be read.
pub(super) fn objects(root: &Path, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
    let name = |key: &str| format!("file://{}", root.join(key).display());
    let mut objects = Vec::new();
    let store = match Directory::open(root, "") {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(objects),
        store => store.map_err(|error| refused("list", &name(""), error))?,
    };
    let mut open = vec![String::new()];
    while let Some(key) = open.pop() {
        let is_asked_for = !key.is_empty() && key.starts_with(prefix);
        let (directory, names) = match store.below(&key).and_then(|found| found.names().map(|names| (found, names))) {
            Ok(found) => found,
            // A file or a link is not ours, and a directory may be gone meanwhile.
            Err(error) if is_no_directory(&error) => continue,
            // It may hold an object, and whoever reads that is told what is wrong. Other objects are not hidden.
            Err(_) if is_asked_for => {
                objects.push(ListedObject::new(key, None));
                continue;
            }
            Err(error) => return Err(refused("list", &name(&key), error)),
        };
        for part in names {
            if part == GENERATIONS {
                if is_asked_for {
                    let object = ObjectDirectory::new(root, &key, name(&key));
                    match directory.child(GENERATIONS).map(|generations| object.newest_in(&generations)) {
                        Ok(Ok(newest)) => {
                            let version = newest.as_ref().and_then(Newest::version);
                            objects.extend(version.map(|version| ListedObject::new(&key, Some(version))));
                        }
                        Err(error) if is_no_directory(&error) => {}
                        // An object that cannot be read may exist.
                        Ok(Err(_)) | Err(_) => objects.push(ListedObject::new(&key, None)),
                    }
                }
            } else if key::is_part(&part) {
                let below = if key.is_empty() { part } else { format!("{key}/{part}") };
                if below.starts_with(prefix) || prefix.starts_with(&format!("{below}/")) {
                    open.push(below);
                }
            }
        }
    }
    objects.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    Ok(objects)
}

fn is_no_directory(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
        || Errno::from_io_error(error) == Some(Errno::LOOP)
}
