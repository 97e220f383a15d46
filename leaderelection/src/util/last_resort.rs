//! Prints errors on standard error if the program has set up no log, as Python's `logging.lastResort` does.

use std::fmt::Display;
use std::io::{self, Write};
use std::thread;

/// Prints an error on standard error if the program has not yet set a subscriber of `tracing`. A beginner's program
/// often has none, and would otherwise wait without saying why.
pub(crate) fn tell(what: &str, error: impl Display) {
    if let Some(line) = line(what, error) {
        // On a thread of its own: if standard error is a full pipe, the write blocks, and must not delay a renewal.
        let _ = thread::Builder::new().name("last-resort".to_owned()).spawn(move || write(&line));
    }
}

/// Does the same as [`tell`], but returns only after the line is written, for a process that is about to end.
pub(crate) fn tell_now(what: &str, error: impl Display) {
    if let Some(line) = line(what, error) {
        write(&line);
    }
}

/// Returns the line to print; `None` if the program has a log.
fn line(what: &str, error: impl Display) -> Option<String> {
    // A subscriber counts even if only another thread uses it.
    (!tracing::dispatcher::has_been_set()).then(|| format!("leaderelection: {what}: {error}\n"))
}

fn write(line: &str) {
    // A closed standard error loses the line. `eprintln!` would panic.
    let _ = io::stderr().write_all(line.as_bytes());
}
