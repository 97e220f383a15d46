//! `leaderelect man`.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Arg, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::environment;
use crate::exit::{self, Exit, Failure};
use crate::output::Output;

/// Print the man page, or write all pages
///
///     leaderelect man | man -l -
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Write all pages into this directory
    ///
    /// leaderelect.1, and a page for each command.
    #[arg(long, value_name = "PATH")]
    directory: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  To install a page for each command:
    leaderelect man --directory /usr/local/share/man/man1";

/// The examples of the page about the whole program.
const FIRST_STEPS: &str = "\
Examples:
  A command that runs on one of many machines at a time:
    leaderelect run --lock s3://bucket/locks/backup -- ./backup.sh
  The machine that runs it:
    leaderelect status s3://bucket/locks/backup
  The URL from a file, because its SAS is a secret:
    leaderelect status --lock-file /etc/leaderelect/backup.url";

/// The variables that the program reads beside those of its options.
const ENVIRONMENT: &str = "\
RUST_LOG
    The log's levels, such as debug or leaderelection=debug,aws_config=info; overrides --quiet and --verbose.
NO_COLOR
    No colours, if set to anything.
LEADERELECTION_HTTP_TOKEN
    The token that `leaderelect serve` and `leaderelect dashboard` require, if there is no --token-file.
AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL_S3, ...
    Credentials and settings for s3:// URLs, as the AWS command line reads them.
GOOGLE_APPLICATION_CREDENTIALS, STORAGE_EMULATOR_HOST
    Credentials, or an emulator, for gs:// URLs.
AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_CLIENT_SECRET, ...
    Credentials for az:// and https:// URLs, as the Azure libraries read them.
KUBECONFIG
    The cluster of lease:// URLs and its credentials. In a pod, the pod's own cluster needs no variable.

`leaderelect run` sets LEADERELECTION_IDENTITY, LEADERELECTION_FENCING_TOKEN and LEADERELECTION_LOCK for its command,
and LEADERELECTION_SLOT with --slots. The command does not get the variables of the options, whose names begin with
LEADERELECT_.";

pub(crate) fn run(args: Args, command: Command, output: &Output) -> Result<Exit, Failure> {
    let pages = pages(command);
    match args.directory {
        Some(directory) => {
            let written = pages.iter().try_for_each(|page| {
                let mut file = File::create(directory.join(page.man.get_filename()))?;
                file.write_all(&render(page)?)
            });
            written.map_err(|error| {
                let problem = format!("cannot write to {}: {error}; the directory must exist", directory.display());
                Failure::internal(problem)
            })?;
        }
        None => {
            if let Some(page) = pages.first() {
                output.raw(&render(page)?)?;
            }
        }
    }
    Ok(Exit::Done)
}

/// A page about the program, and one about each of its commands.
fn pages(command: Command) -> Vec<ManPage> {
    // There is no page about `help`.
    let mut program = command.disable_help_subcommand(true);
    program.build();
    let commands: Vec<_> = program.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    let names = commands.iter().map(|command| command.get_display_name().unwrap_or_default().to_owned()).collect();
    let page = |command, see_also| ManPage { man: man(&command), command, see_also };
    let others = commands.into_iter().map(|command| page(command, vec![exit::PROGRAM.to_owned()]));
    let others: Vec<_> = others.collect();
    std::iter::once(page(program, names)).chain(others).collect()
}

struct ManPage {
    man: Man,
    command: Command,
    see_also: Vec<String>,
}

/// The usage line of `--help` names values and what is required; the one that is made for man pages does not.
fn man(command: &Command) -> Man {
    let mut command = command.clone();
    let usage = command.render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_owned();
    Man::new(command.override_usage(usage))
}

fn render(page: &ManPage) -> io::Result<Vec<u8>> {
    let ManPage { man, command, see_also } = page;
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    if let Some(about) = command.get_long_about().or_else(|| command.get_about()) {
        section("DESCRIPTION", &about.to_string(), &mut text)?;
    }
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    section("EXIT STATUS", without_heading(exit::TABLE), &mut text)?;
    section("ENVIRONMENT", &(variables(command) + ENVIRONMENT), &mut text)?;
    let own = command.get_after_long_help().filter(|_| !command.has_subcommands());
    let examples = own.map_or_else(|| FIRST_STEPS.to_owned(), ToString::to_string);
    section("EXAMPLES", without_heading(&examples), &mut text)?;
    section("SEE ALSO", &see_also.iter().map(|name| format!("{name}(1)")).collect::<Vec<_>>().join(", "), &mut text)?;
    man.render_version_section(&mut text)?;
    Ok(text)
}

/// The variables of the options.
fn variables(command: &Command) -> String {
    let variable = |arg: &Arg| {
        arg.get_env()?;
        let name = environment::variable(arg)?;
        let option = match arg.get_long() {
            Some(long) => format!("--{long}"),
            None => arg.get_value_names()?.join(" "),
        };
        Some(format!("{name}\n    The same as {option}.\n"))
    };
    command.get_arguments().filter_map(variable).collect()
}

fn without_heading(text: &str) -> &str {
    text.split_once(":\n").map_or(text, |(_, rest)| rest)
}

/// Writes a section. Indented lines stay as they are, and other lines are paragraphs.
fn section(heading: &str, text: &str, out: &mut Vec<u8>) -> io::Result<()> {
    let mut roff = Roff::default();
    roff.control("SH", [heading]);
    let mut is_table = false;
    for line in text.lines() {
        if line.starts_with(' ') != is_table && !line.is_empty() {
            is_table = !is_table;
            roff.control(if is_table { "nf" } else { "fi" }, []);
        }
        if line.is_empty() {
            roff.control("PP", []);
        } else {
            roff.text([roman(line)]);
        }
    }
    if is_table {
        roff.control("fi", []);
    }
    roff.to_writer(out)
}
