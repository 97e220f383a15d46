//! Output: results on standard output, everything else on standard error.

pub(crate) mod escape;
mod line;
mod log;
mod log_dedup;
mod stderr;
pub(crate) mod table;

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anstream::AutoStream;
use anstyle::Style;
use clap::Args;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde::Serialize;
use tracing::Level;

use self::line::{Line, Rendering};
use self::log::Log;
use self::stderr::Stderr;
use crate::environment;
use crate::exit::{Exit, Failure, PROGRAM};
use crate::output::escape::{escape, plain_json};

pub(crate) use self::line::Format;

/// The style of the program's name before every message.
pub(crate) const BOLD: Style = Style::new().bold();

/// The time that messages get to be written before the process ends, or before it waits for an answer.
const FLUSH: Duration = Duration::from_secs(1);

/// The output arguments of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Messages")]
pub(crate) struct OutputArgs {
    /// Print only results and errors
    ///
    /// Hides the log's warnings, but not those about options, failed hooks, and LEADERELECT_ variables that match no option.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Log more; -vv logs every request
    ///
    /// -v logs transitions and failed requests, -vv every request as well. RUST_LOG overrides this option.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Log as text or json
    ///
    /// Applies to messages and the log, on standard error; json is one object per line.
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: Format,
}

impl OutputArgs {
    fn level(&self) -> Level {
        match (self.quiet, self.verbose) {
            (true, _) => Level::ERROR,
            (_, 0) => Level::WARN,
            (_, 1) => Level::INFO,
            _ => Level::DEBUG,
        }
    }
}

/// The destination of all output. Colour is only for terminals, and only without NO_COLOR.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    quiet: bool,
    stderr: Stderr,
    log: Log,
    /// The format of messages, which helper processes have to keep to.
    pub(crate) format: Format,
    /// Standard error shows colours.
    colour: bool,
    /// Standard error is a terminal that can erase the progress line.
    wiping: bool,
}

impl Output {
    /// Creates the output and sets up the log.
    pub(crate) fn new(args: &OutputArgs) -> Result<Self, Failure> {
        let format = args.log_format;
        let colour = format == Format::Text && AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
        let stderr = Stderr::start(Rendering { format, colour });
        let stderr = stderr.map_err(|error| Failure::internal(format!("cannot start: {error}")))?;
        let log = Log::install(args.level(), stderr.clone());
        let wiping = colour && io::stderr().is_terminal();
        let output = Self { quiet: args.quiet, stderr, log, format, colour, wiping };
        let panicking = output.clone();
        // The standard hook would wait for standard error.
        std::panic::set_hook(Box::new(move |panic| {
            panicking.print(Level::ERROR, panic.to_string().replace('\n', " "));
        }));
        Ok(output)
    }

    /// Creates the output of a process beside the command.
    #[cfg(unix)]
    pub(crate) fn of_helper(log_format: Format) -> Result<Self, Failure> {
        Self::new(&OutputArgs { quiet: false, verbose: 0, log_format })
    }

    /// Prints a message about an event on standard error.
    pub(crate) fn say(&self, what: impl Display) {
        if !self.quiet {
            self.print(Level::INFO, what);
        }
    }

    /// Prints a warning about the command line or the environment on standard error. `--quiet` does not hide it.
    pub(crate) fn warn(&self, what: impl Display) {
        self.print(Level::WARN, what);
    }

    /// Prints a question on standard error, which stays there while the answer is read.
    pub(crate) fn ask(&self, question: impl Display) {
        match self.format {
            Format::Text => self.stderr.text(self.styled(format_args!("{} ", escape(question)))),
            Format::Json => self.print(Level::INFO, question),
        }
        self.flush();
    }

    /// The stream for results.
    pub(crate) fn stdout(&self) -> AutoStream<io::StdoutLock<'static>> {
        anstream::stdout().lock()
    }

    /// The width of the terminal that shows results; `None` if results go somewhere else.
    pub(crate) fn width(&self) -> Option<usize> {
        #[cfg(unix)]
        if let Ok(size) = rustix::termios::tcgetwinsize(io::stdout()) {
            return Some(size.ws_col.into()).filter(|width| *width > 0);
        }
        None
    }

    /// Prints bytes unchanged.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        Ok(stdout.flush()?)
    }

    /// Prints a result as one line of JSON.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let json = serde_json::to_string(value).map_err(io::Error::from)?;
        self.raw(format!("{}\n", plain_json(&json)).as_bytes())
    }

    /// Shows the current state on a terminal until the next message or until [`done`](Self::done).
    pub(crate) fn progress(&self, what: impl Display) {
        if self.wiping && !self.quiet {
            self.stderr.progress(self.styled(escape(what)));
        }
    }

    /// Erases the progress line, before something else is written to the terminal.
    pub(crate) fn done(&self) {
        if self.wiping {
            self.stderr.done();
            self.flush();
        }
    }

    /// Prints the reason for which the process ends.
    pub(crate) fn fail(&self, failure: &Failure) -> ExitCode {
        // The last line is the reason.
        self.log.end();
        if failure.exit != Exit::Done {
            self.print(Level::ERROR, failure);
        }
        failure.exit.into()
    }

    /// Waits, when the returned value is dropped, until all messages are written, but not for long.
    pub(crate) fn until_written(&self) -> impl Drop + use<> {
        UntilWritten(self.clone())
    }

    fn flush(&self) {
        self.stderr.flush(FLUSH);
    }

    fn print(&self, level: Level, message: impl Display) {
        self.stderr.line(&Line::said(level, message));
    }

    fn styled(&self, text: impl Display) -> String {
        let text = text.to_string();
        if self.colour { text } else { anstream::adapter::strip_str(&text).to_string() }
    }
}

struct UntilWritten(Output);

impl Drop for UntilWritten {
    fn drop(&mut self) {
        self.0.log.end();
        self.0.flush();
    }
}

/// Prints the reason for which the process ends before there is an [`Output`].
pub(crate) fn fail_early(failure: &Failure, format: Format) -> ExitCode {
    early(Line::said(Level::ERROR, failure), format);
    failure.exit.into()
}

fn early(line: Line, format: Format) {
    let colour = AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    let _ = io::stderr().write_all(line.render(Rendering { format, colour }).as_bytes());
}

/// Prints clap's help or error message. An error message repeats no secret of the command line.
pub(crate) fn usage_error(mut error: clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return Exit::Done.into();
    }
    suggest_dashes(&mut error);
    suggest_present_name(&mut error);
    let args = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).chain(environment::values());
    let text = harmless(error.render().ansi().to_string() + &environment_note(&error), args);
    let args = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned());
    match Format::asked_for(args, std::env::var("LEADERELECT_LOG_FORMAT").ok().as_deref()) {
        Format::Text => {
            // A command line without any argument gets the help, which is no message.
            let is_message = anstream::adapter::strip_str(&text).to_string().starts_with("error: ");
            let name = if is_message { format!("{BOLD}{PROGRAM}:{BOLD:#} ") } else { String::new() };
            drop(write!(anstream::stderr(), "{name}{text}"));
        }
        Format::Json => {
            let text = anstream::adapter::strip_str(&text).to_string();
            early(Line::said(Level::ERROR, text.trim().trim_start_matches("error: ")), Format::Json);
        }
    }
    Exit::Usage.into()
}

/// Tells a user who has left out the `--` before the command.
fn suggest_dashes(error: &mut clap::Error) {
    let is_word =
        matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(arg)) if !arg.starts_with('-'));
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    if error.kind() == ErrorKind::UnknownArgument && is_word && usage.contains("-- <COMMAND>") {
        let tip = "the command comes after '--'".to_owned();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}

/// Suggests the name of an option that the help shows, instead of a former one.
fn suggest_present_name(error: &mut clap::Error) {
    let Some(ContextValue::String(suggested)) = error.get(ContextKind::SuggestedArg) else { return };
    if let Some(present) = environment::present_name(suggested) {
        error.insert(ContextKind::SuggestedArg, ContextValue::String(present));
    }
}

/// Names the variables that set the options of an error, or else all that set options, which a user may have forgotten.
fn environment_note(error: &clap::Error) -> String {
    let sources = environment::sources(&error.render().to_string());
    if !sources.is_empty() && error.kind() == ErrorKind::ValueValidation {
        return format!("\nThe value comes from {} in the environment.\n", sources.join(", "));
    }
    let names = environment::set().collect::<Vec<_>>().join(", ");
    if names.is_empty() { names } else { format!("\nThe environment sets {names}.\n") }
}

/// Escapes the control characters of every argument that the text repeats, and removes the part after a `?`, because that part
/// may be a SAS.
fn harmless(text: String, args: impl Iterator<Item = String>) -> String {
    args.fold(text, |text, arg| {
        // An error message repeats the whole argument, or only the value of `--option=value` or `-ovalue`.
        let long = arg.strip_prefix("--").and_then(|option| option.split_once('=')).map(|(_, value)| value);
        let short = arg.strip_prefix('-').and_then(|option| option.get(1..));
        [Some(arg.as_str()), long, short].into_iter().flatten().fold(text, |text, repeated| {
            let shown = match repeated.split_once('?') {
                Some((beginning, query)) if !query.is_empty() => format!("{}?…", escape(beginning)),
                _ => escape(repeated),
            };
            if shown == repeated { text } else { text.replace(repeated, &shown) }
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
        assert_eq!(harmless(text, args.into_iter()), "unexpected argument 'https://a.test/b?…' found");
    }

    #[test]
    fn a_value_behind_its_option_loses_its_query_too() {
        for arg in ["--lease=https://a.test/b?sig=secret", "-ohttps://a.test/b?sig=secret"] {
            let text = "invalid value 'https://a.test/b?sig=secret' for '--lease'".to_owned();
            let shown = harmless(text, [arg.to_owned()].into_iter());
            assert_eq!(shown, "invalid value 'https://a.test/b?…' for '--lease'");
        }
    }

    #[test]
    fn a_short_query_takes_nothing_else_away() {
        let text = "unexpected argument 'gs://b/o?e' found\n\nUsage: leaderelect".to_owned();
        let shown = harmless(text, ["gs://b/o?e".to_owned()].into_iter());
        assert_eq!(shown, "unexpected argument 'gs://b/o?…' found\n\nUsage: leaderelect");
    }
}
