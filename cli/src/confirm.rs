//! Asks before something is done that cannot be undone.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use crate::exit::{Exit, Failure};

/// What somebody said beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beforehand {
    /// Do it.
    Yes,
    /// Ask on a terminal, and do it where there is none.
    AskIfPossible,
    /// Ask; and refuse where that is not possible.
    Ask,
}

/// Whether to go on.
pub(crate) fn confirmed(question: &str, beforehand: Beforehand) -> Result<bool, Failure> {
    let possible = io::stdin().is_terminal() && io::stderr().is_terminal();
    match beforehand {
        Beforehand::Yes => return Ok(true),
        Beforehand::AskIfPossible if !possible => return Ok(true),
        Beforehand::Ask if !possible => {
            return Err(Failure::usage("there is no terminal to ask on; add --yes if you are sure"));
        }
        Beforehand::Ask | Beforehand::AskIfPossible => {}
    }
    let mut answer = String::new();
    let asked =
        write!(anstream::stderr(), "{question} [y/N] ").and_then(|()| io::stdin().lock().read_line(&mut answer));
    asked.map_err(|error| Failure::new(Exit::Internal, format!("cannot ask on this terminal: {error}")))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
