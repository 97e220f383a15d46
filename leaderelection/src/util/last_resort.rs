//! Standard error, for what must not be missed where a program has set up no log: Python's `logging.lastResort`.

use std::fmt::Display;
use std::io::{self, Write};
use std::thread;

/// Tells an error on standard error if the program has set no subscriber of `tracing` so far. A first program has none yet, and
/// would wait without a word.
pub(crate) fn tell(what: &str, error: impl Display) {
    if let Some(line) = line(what, error) {
        // On a thread of its own: a standard error that nobody empties must delay no renewal.
        let _ = thread::Builder::new().name("last-resort".to_owned()).spawn(move || write(&line));
    }
}

/// Does the same before it returns, for a process that is about to end.
pub(crate) fn tell_now(what: &str, error: impl Display) {
    if let Some(line) = line(what, error) {
        write(&line);
    }
}

fn line(what: &str, error: impl Display) -> Option<String> {
    // A subscriber of another thread counts: the program has a log.
    (!tracing::dispatcher::has_been_set()).then(|| format!("leaderelection: {what}: {error}\n"))
}

fn write(line: &str) {
    // Nobody reads a standard error that is closed, and `eprintln!` would panic.
    let _ = io::stderr().write_all(line.as_bytes());
}
