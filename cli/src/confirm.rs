//! Asks for confirmation before an action that cannot be undone.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use crate::exit::{Exit, Failure};

/// The answer that the command line gives in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beforehand {
    /// Proceed without asking.
    Yes,
    /// Ask on a terminal, and proceed where there is none.
    AskIfPossible,
    /// Ask on a terminal, and refuse where there is none.
    Ask,
}

/// Returns `true` if the action should proceed.
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
