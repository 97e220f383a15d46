//! Finds the keys in the directory tree.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use leaderelection::{ListedObject, StoreError};

use super::error::refused;
use super::key;
use super::object::{GENERATIONS, ObjectDirectory};

/// Returns all objects, and all folders that cannot be read.
pub(super) fn objects(root: &Path, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
    let mut objects = Vec::new();
    let mut open = vec![String::new()];
    while let Some(key) = open.pop() {
        let directory = root.join(&key);
        let name = || format!("file://{}", directory.display());
        let is_asked_for = !key.is_empty() && key.starts_with(prefix);
        let names = match subdirectories(&directory) {
            Ok(names) => names,
            // It may hold an object, and whoever reads that is told what is wrong. Other objects are not hidden.
            Err(_) if is_asked_for => {
                objects.push(ListedObject::new(key, None));
                continue;
            }
            Err(error) => return Err(refused("list", &name(), error)),
        };
        for part in names {
            if part == GENERATIONS {
                if is_asked_for {
                    match ObjectDirectory::new(root, &key, name()).version() {
                        Ok(version) => objects.extend(version.map(|version| ListedObject::new(&key, Some(version)))),
                        // An object that cannot be looked at exists as far as is known.
                        Err(_) => objects.push(ListedObject::new(&key, None)),
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

/// Returns no names if the directory does not exist, or no longer exists.
fn subdirectories(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            names.extend(entry.file_name().into_string());
        }
    }
    Ok(names)
}
