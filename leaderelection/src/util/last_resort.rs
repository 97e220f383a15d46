//! Standard error, for what must not be missed where a program has set up no log: Python's `logging.lastResort`.

use std::fmt::Display;
use std::io::{self, Write};

use tracing::subscriber::NoSubscriber;

/// Tells an error on standard error if the program has no subscriber of `tracing`. A first program has none yet, and would wait
/// without a word.
pub(crate) fn tell(what: &str, error: impl Display) {
    if tracing::dispatcher::get_default(|log| log.is::<NoSubscriber>()) {
        // Nobody reads a standard error that is closed, and `eprintln!` would panic.
        let _ = writeln!(io::stderr(), "leaderelection: {what}: {error}");
    }
}
