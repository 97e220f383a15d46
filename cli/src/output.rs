//! What is shown, and how: results on standard output, everything else on standard error.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::AutoStream;
use anstyle::Style;
use clap::{Args, ValueEnum};
use serde::Serialize;
use tracing_subscriber::EnvFilter;

use crate::exit::{Exit, Failure};

/// A name before everything that is said.
pub(crate) const BOLD: Style = Style::new().bold();

/// What every command takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct OutputArgs {
    /// Say nothing but results and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Log more: what happens (-v), and every request (-vv). RUST_LOG overrides it
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

/// In which form a result is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs: one JSON object per line
    Json,
}

/// Where to print. Colour is for terminals, and there too only without NO_COLOR.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    quiet: bool,
    /// Whether somebody watches standard error, on something that can wipe off what it shows.
    wiping: bool,
    /// Whether there is progress to wipe off.
    shown: Arc<AtomicBool>,
}

impl Output {
    /// Also sets up the log.
    pub(crate) fn new(args: &OutputArgs) -> Self {
        let level = match (args.quiet, args.verbose) {
            (true, _) => "error",
            (_, 0) => "warn",
            (_, 1) => "info",
            _ => "debug",
        };
        let ours = format!("leaderelection={level},leaderelection_backends={level},leaderelect={level}");
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(ours));
        // Without it, all escapes are taken out, also those that wipe.
        let colour = AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colour).with_writer(io::stderr).init();
        Self { quiet: args.quiet, wiping: colour && io::stderr().is_terminal(), shown: Arc::default() }
    }

    /// Tells what happens, on standard error.
    pub(crate) fn say(&self, what: impl Display) {
        if !self.quiet {
            self.done();
            // Nobody to tell is no reason to stop.
            let _ = writeln!(anstream::stderr(), "{BOLD}leaderelect:{BOLD:#} {what}");
        }
    }

    /// Where results go.
    pub(crate) fn stdout(&self) -> AutoStream<io::StdoutLock<'static>> {
        anstream::stdout().lock()
    }

    /// Prints bytes as they are.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        Ok(stdout.flush()?)
    }

    /// Prints a result as one line of JSON.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        serde_json::to_writer(&mut stdout, value).map_err(io::Error::from)?;
        writeln!(stdout)?;
        Ok(stdout.flush()?)
    }

    /// Shows what is going on until something else is said or until [`done`](Self::done), if somebody
    /// watches.
    pub(crate) fn progress(&self, what: impl Display) {
        if self.wiping && !self.quiet {
            self.done();
            self.shown.store(true, Ordering::Relaxed);
            let _ = write!(anstream::stderr(), "{what}");
        }
    }

    /// Takes the progress off the screen.
    pub(crate) fn done(&self) {
        if self.shown.swap(false, Ordering::Relaxed) {
            let _ = write!(anstream::stderr(), "\r\x1b[K");
        }
    }

    /// Tells why the process ends.
    pub(crate) fn fail(&self, failure: &Failure) -> ExitCode {
        self.done();
        if failure.exit != Exit::Done {
            let red = Style::new().bold().fg_color(Some(anstyle::AnsiColor::Red.into()));
            let _ = writeln!(anstream::stderr(), "{BOLD}leaderelect:{BOLD:#} {red}error:{red:#} {failure}");
        }
        failure.exit.into()
    }
}

/// Shows what clap has to say: help, or a complaint that repeats no secret of the command line.
pub(crate) fn usage_error(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return Exit::Done.into();
    }
    let args = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned());
    let text = without_queries(error.render().ansi().to_string(), args);
    let _ = write!(anstream::stderr(), "{text}");
    Exit::Usage.into()
}

/// The text without what follows a `?` in the arguments that it repeats, as it may be a SAS.
fn without_queries(text: String, args: impl Iterator<Item = String>) -> String {
    args.fold(text, |text, arg| {
        // A complaint is about the whole, or about the value of `--option=value` or `-ovalue`.
        let long = arg.strip_prefix("--").and_then(|option| option.split_once('=')).map(|(_, value)| value);
        let short = arg.strip_prefix('-').and_then(|option| option.get(1..));
        [Some(arg.as_str()), long, short].into_iter().flatten().fold(text, |text, repeated| {
            match repeated.split_once('?') {
                Some((beginning, query)) if !query.is_empty() => text.replace(repeated, &format!("{beginning}?…")),
                _ => text,
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_argument_loses_its_query() {
        let text = "unexpected argument 'https://a.test/b?sv=1&sig=secret' found".to_owned();
        let args = ["status", "https://a.test/b?sv=1&sig=secret", "what?"].map(str::to_owned);
        assert_eq!(without_queries(text, args.into_iter()), "unexpected argument 'https://a.test/b?…' found");
    }

    #[test]
    fn a_value_behind_its_option_loses_its_query_too() {
        for arg in ["--lease=https://a.test/b?sig=secret", "-ohttps://a.test/b?sig=secret"] {
            let text = "invalid value 'https://a.test/b?sig=secret' for '--lease'".to_owned();
            let shown = without_queries(text, [arg.to_owned()].into_iter());
            assert_eq!(shown, "invalid value 'https://a.test/b?…' for '--lease'");
        }
    }

    #[test]
    fn a_short_query_takes_nothing_else_away() {
        let text = "unexpected argument 'gs://b/o?e' found\n\nUsage: leaderelect".to_owned();
        let shown = without_queries(text, ["gs://b/o?e".to_owned()].into_iter());
        assert_eq!(shown, "unexpected argument 'gs://b/o?…' found\n\nUsage: leaderelect");
    }
}
