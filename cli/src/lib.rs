//! The program `leaderelect`: runs a command on one of many machines at a time, and shows the current leader.
//!
//! A library only so that tests of other packages can have the program. Its one function may change in any release.
//!
//! `commands` has a file or a folder for every subcommand, with its arguments and its code. The subcommands share `args`
//! (arguments of several), `lock` (the location of the lock, and a view of it), `survey` (all locks under a prefix), `history`
//! (ended terms), `output` (the forms of output), `pages` (what browsers see) and `exit` (the exit codes). `supervise` keeps the processes
//! of a command, and knows nothing of elections.

mod args;
mod cause;
mod client;
mod commands;
mod environment;
mod exit;
mod history;
mod lock;
mod output;
mod pages;
mod runtime;
#[cfg(unix)]
mod supervise;
mod survey;

use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

#[cfg(feature = "lease-api")]
use crate::commands::lease_api;
#[cfg(unix)]
use crate::commands::run;
use crate::commands::{
    completions, dashboard, health, list, man, probe, release, serve, status, transfer, version, watch,
};
use crate::exit::{Exit, Failure};
use crate::output::{Output, OutputArgs};

/// Leader election over object stores: one of many machines leads at a time.
///
///     leaderelect run --lock s3://bucket/locks/backup -- ./backup.sh
///
/// A lock is one small object, named by a URL:
///
///     s3://bucket/key?region=eu-central-1
///     s3://bucket/key?endpoint=http://127.0.0.1:8333
///     gs://bucket/object
///     az://account/container/blob
///     lease://namespace/name (in a pod also lease:///name)
///     oss://bucket/key?endpoint=https://host (feature opendal; also cos, tos)
///     https://account.blob.core.windows.net/container/blob?SAS
///     file:///directory/name
///     sequenced+file:///directory/name?keep=1000
///
/// Credentials come from the environment, resolved the same way as in each cloud's
/// own tools.
#[derive(Debug, Parser)]
#[command(name = "leaderelect", version = env!("BUILT_VERSION"), verbatim_doc_comment, after_help = NOTE)]
#[command(after_long_help = exit::TABLE)]
#[command(propagate_version = true, subcommand_required = true, arg_required_else_help = true, max_term_width = 80)]
struct Cli {
    #[command(flatten)]
    output: OutputArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(unix)]
    Run(Box<run::Args>),
    Status(status::Args),
    Watch(watch::Args),
    List(list::Args),
    History(commands::history::Args),
    Serve(Box<serve::Args>),
    Health(health::Args),
    Dashboard(Box<dashboard::Args>),
    #[cfg(feature = "lease-api")]
    LeaseApi(Box<lease_api::Args>),
    Transfer(transfer::Args),
    Release(release::Args),
    Probe(probe::Args),
    Completions(completions::Args),
    Man(man::Args),
    Version(version::Args),
}

impl Command {
    async fn run(self, output: &Output) -> Result<Exit, Failure> {
        match self {
            #[cfg(unix)]
            Self::Run(args) => run::run(*args, output).await,
            Self::Status(args) => status::run(args, output).await,
            Self::Watch(args) => watch::run(args, output).await,
            Self::List(args) => list::run(args, output).await,
            Self::History(args) => commands::history::run(args, output).await,
            Self::Serve(args) => serve::run(*args, output).await,
            Self::Health(args) => health::run(args, output).await,
            Self::Dashboard(args) => dashboard::run(*args, output).await,
            #[cfg(feature = "lease-api")]
            Self::LeaseApi(args) => lease_api::run(*args, output).await,
            Self::Transfer(args) => transfer::run(args, output).await,
            Self::Release(args) => release::run(args, output).await,
            Self::Probe(args) => probe::run(args, output).await,
            Self::Completions(args) => completions::run(args, command(), output),
            Self::Man(args) => man::run(args, command(), output),
            Self::Version(args) => version::run(&args, output),
        }
    }
}

/// The end of `leaderelect -h`.
const NOTE: &str = "\
Options of a command: leaderelect COMMAND -h. URLs, exit codes: --help";

/// The time for calls that nobody waits for any more, such as a write whose answer came too late. A call on a disk that
/// hangs has no end, and a runtime that is only dropped waits for it.
const LAST_CALLS: Duration = Duration::from_secs(1);

/// The command line with the environment variables of its options.
fn command() -> clap::Command {
    environment::with_variables(Cli::command())
}

/// Runs `leaderelect` with the arguments and the environment of this process.
pub fn main() -> ExitCode {
    #[cfg(unix)]
    if std::env::args_os().nth(1).is_some_and(|word| supervise::helper::Helper::is(&word)) {
        let (end, format) = supervise::helper::Helper::parse().run();
        return match end {
            Ok(exit) => exit.into(),
            Err(failure) => output::fail_early(&failure, format),
        };
    }
    let cli = match command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return output::usage_error(error),
    };
    #[cfg(unix)]
    if matches!(cli.command, Command::Run(_)) {
        // Before the first further thread starts.
        supervise::terminal::write_from_the_background();
    }
    let output = match Output::new(&cli.output) {
        Ok(output) => output,
        Err(failure) => return output::fail_early(&failure, cli.output.log_format),
    };
    let _until_written = output.until_written();
    for name in environment::unknown(&command()) {
        output.warn(format_args!("{name} is set, but no option has this variable; --help names the variables"));
    }
    let mut runtime = match &cli.command {
        // Writers that race need several threads to start at the same time.
        Command::Probe(_) => tokio::runtime::Builder::new_multi_thread(),
        // Nothing else needs more than one thread.
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let result = match runtime::build(&mut runtime) {
        Ok(runtime) => {
            let result = runtime.block_on(async {
                #[cfg(unix)]
                supervise::signals::outlive_full_files();
                cli.command.run(&output).await
            });
            runtime.shutdown_timeout(LAST_CALLS);
            result
        }
        Err(error) => Err(Failure::internal(format!("cannot start: {error}"))),
    };
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => output.fail(&failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }
}
