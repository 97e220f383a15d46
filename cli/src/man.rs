//! `leaderelect man`.

use std::path::PathBuf;

use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Print the man page, or write one for every command
///
/// For instance:
///
///     leaderelect man | man -l -
///     leaderelect man --directory /usr/local/share/man/man1
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Write leaderelect.1 and a page for each command into this directory
    #[arg(long, value_name = "PATH")]
    directory: Option<PathBuf>,
}

pub(crate) fn run(args: Args, command: clap::Command, output: &Output) -> Result<Exit, Failure> {
    match args.directory {
        Some(directory) => clap_mangen::generate_to(command, &directory).map_err(|error| {
            let problem = format!("cannot write to {}: {error}; name a directory that exists", directory.display());
            Failure::new(Exit::Internal, problem)
        })?,
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            output.raw(&page)?;
        }
    }
    Ok(Exit::Done)
}
