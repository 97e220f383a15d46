//! `leaderelect completions`.

use clap_complete::Shell;

use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Print a script that completes the command line in a shell
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  For bash:
    leaderelect completions bash > /etc/bash_completion.d/leaderelect";

pub(crate) fn run(args: Args, mut command: clap::Command, output: &Output) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "leaderelect", &mut script);
    output.raw(&script)?;
    Ok(Exit::Done)
}
