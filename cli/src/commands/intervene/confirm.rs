//! Asks for confirmation before an action that cannot be undone.

use std::io::{self, BufRead as _, IsTerminal as _};

use crate::exit::Failure;
use crate::output::Output;

/// The arguments of a command that asks.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Confirmation {
    /// Skip the question
    ///
    /// Required if there is no terminal to ask on.
    #[arg(short, long)]
    yes: bool,
}

impl Confirmation {
    /// Returns `true` if the action should proceed.
    pub(crate) fn of(self, question: &str, output: &Output) -> Result<bool, Failure> {
        if self.yes {
            return Ok(true);
        }
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Err(Failure::usage("no terminal to ask for confirmation; add --yes if you are sure"));
        }
        output.ask(format_args!("{question} [y/N]"));
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer);
        read.map_err(|error| Failure::internal(format!("cannot ask on this terminal: {error}")))?;
        Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }
}
