//! The files from which inputs are made.

use std::fs;
use std::path::{Path, PathBuf};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");

/// The words that mean something to some target, in libFuzzer's format.
const WORDS: &str = include_str!("../corpus/words.dict");

/// Returns the files of a target's corpus, in the order of their names, with their content.
#[must_use]
pub fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = fs::read_dir(Path::new(FOLDER).join(target)).into_iter().flatten();
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect()
}

/// The words of the dictionary.
pub(crate) fn words() -> Vec<Vec<u8>> {
    WORDS.lines().filter_map(|line| line.strip_prefix('"')?.strip_suffix('"')).map(unescaped).collect()
}

fn unescaped(word: &str) -> Vec<u8> {
    let mut parts = word.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    while let Some(part) = parts.next() {
        match part.strip_prefix('x') {
            // Two digits of a byte.
            Some(code) => {
                bytes.push(u8::from_str_radix(&code[..2], 16).expect("a byte in hexadecimal"));
                bytes.extend_from_slice(&code.as_bytes()[2..]);
            }
            // A second backslash.
            None if part.is_empty() => bytes.extend([b"\\", parts.next().unwrap_or_default().as_bytes()].concat()),
            None => bytes.extend_from_slice(part.as_bytes()),
        }
    }
    bytes
}
