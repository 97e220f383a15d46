//! `leaderelect`: runs a command on one of many machines at a time, and shows the current leader.
//!
//! Every subcommand has a file of its own, with its arguments and its code. The subcommands share `lock` (the
//! location of the lock), `timing` (the timings of a candidate), `output` (the forms of output) and `exit` (the
//! exit codes).

mod completions;
mod confirm;
mod dashboard;
mod environment;
mod exit;
mod following;
mod health;
mod history;
mod http;
mod intervene;
mod list;
mod lock;
mod logged;
mod man;
#[cfg(unix)]
mod notify;
mod observe;
mod output;
mod page;
mod peers;
mod plain;
mod probe;
mod release;
mod require_probe;
#[cfg(unix)]
mod run;
mod serve;
mod status;
mod store_clock;
mod survey;
mod timing;
mod transfer;
mod view;
mod watch;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::exit::{Exit, Failure};
use crate::output::{Output, OutputArgs};

/// Leader election over Amazon S3, Google Cloud Storage, Azure Blob Storage or a local directory.
///
/// A lock is one small object, named by a URL:
///
///     s3://bucket/key?region=eu-central-1
///     s3://bucket/key?endpoint=http://127.0.0.1:8333
///     gs://bucket/object
///     az://account/container/blob
///     lease://namespace/name (feature kubernetes)
///     oss://bucket/key?endpoint=https://host (feature opendal; also cos, tos)
///     https://account.blob.core.windows.net/container/blob?SAS
///     file:///directory/name
///     sequenced+file:///directory/name?keep=1000
///
/// Credentials come from the environment, as each cloud's own tools find them.
#[derive(Debug, Parser)]
#[command(name = "leaderelect", version = env!("BUILT_VERSION"), verbatim_doc_comment, after_help = exit::TABLE)]
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
    History(history::Args),
    Serve(Box<serve::Args>),
    Health(health::Args),
    Dashboard(Box<dashboard::Args>),
    Transfer(transfer::Args),
    Release(release::Args),
    Probe(probe::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Command {
    async fn run(self, output: &Output) -> Result<Exit, Failure> {
        match self {
            #[cfg(unix)]
            Self::Run(args) => run::run(*args, output).await,
            Self::Status(args) => status::run(args, output).await,
            Self::Watch(args) => watch::run(args, output).await,
            Self::List(args) => list::run(args, output).await,
            Self::History(args) => history::run(args, output).await,
            Self::Serve(args) => serve::run(*args, output).await,
            Self::Health(args) => health::run(args, output).await,
            Self::Dashboard(args) => dashboard::run(*args, output).await,
            Self::Transfer(args) => transfer::run(args, output).await,
            Self::Release(args) => release::run(args, output).await,
            Self::Probe(args) => probe::run(args, output).await,
            Self::Completions(args) => completions::run(args, command(), output),
            Self::Man(args) => man::run(args, command(), output),
        }
    }
}

/// The command line with the environment variables of its options.
fn command() -> clap::Command {
    environment::with_variables(Cli::command())
}

fn main() -> ExitCode {
    #[cfg(unix)]
    if std::env::args_os().nth(1).is_some_and(|word| run::Helper::is(&word)) {
        return run::Helper::parse().run();
    }
    let cli = match command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return output::usage_error(&error),
    };
    #[cfg(unix)]
    if matches!(cli.command, Command::Run(_)) {
        // Before the first further thread starts.
        run::write_from_the_background();
    }
    let output = match Output::new(&cli.output) {
        Ok(output) => output,
        Err(failure) => return output::fail_early(&failure, cli.output.log_format()),
    };
    let _until_written = output.until_written();
    for name in environment::unknown(&command()) {
        output.say(format_args!("{name} is set, but no option has this variable; --help names the variables"));
    }
    let mut runtime = match &cli.command {
        // Writers that race need several threads to start at the same time.
        Command::Probe(_) => tokio::runtime::Builder::new_multi_thread(),
        // Nothing else needs more than one thread.
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let result = runtime
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Internal, format!("cannot start: {error}")))
        .and_then(|runtime| runtime.block_on(cli.command.run(&output)));
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
