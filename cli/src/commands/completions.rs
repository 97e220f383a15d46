//! `leaderelect completions`.

use clap_complete::Shell;

use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Print a completion script for a shell
///
///     leaderelect completions bash > /etc/bash_completion.d/leaderelect
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Choose bash, zsh, fish, elvish, powershell
    #[arg(hide_possible_values = true)]
    shell: Shell,
}

pub(crate) fn run(args: Args, mut command: clap::Command, output: &Output) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "leaderelect", &mut script);
    output.raw(&script)?;
    Ok(Exit::Done)
}
