//! Finds the keys in the directory tree.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use leaderelection::StoreError;

use super::error::refused;
use super::key;
use super::object::{GENERATIONS, ObjectDirectory};

/// Returns the keys of all objects, and of all folders that cannot be read.
pub(super) fn keys(root: &Path, prefix: &str) -> Result<Vec<String>, StoreError> {
    let mut keys = Vec::new();
    let mut open = vec![String::new()];
    while let Some(key) = open.pop() {
        let directory = root.join(&key);
        let name = || format!("file://{}", directory.display());
        let is_asked_for = !key.is_empty() && key.starts_with(prefix);
        let names = match subdirectories(&directory) {
            Ok(names) => names,
            // It may hold an object, and whoever reads that is told what is wrong. Other objects are not hidden.
            Err(_) if is_asked_for => {
                keys.push(key);
                continue;
            }
            Err(error) => return Err(refused("list", &name(), error)),
        };
        for part in names {
            if part == GENERATIONS {
                // An object that cannot be looked at exists as far as is known.
                if is_asked_for && ObjectDirectory::new(root, &key, name()).exists().unwrap_or(true) {
                    keys.push(key.clone());
                }
            } else if key::is_part(&part) {
                let below = if key.is_empty() { part } else { format!("{key}/{part}") };
                if below.starts_with(prefix) || prefix.starts_with(&format!("{below}/")) {
                    open.push(below);
                }
            }
        }
    }
    keys.sort_unstable();
    Ok(keys)
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
