//! The exit codes of the process.

use std::fmt;
use std::io;
#[cfg(unix)]
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitCode;
#[cfg(unix)]
use std::process::ExitStatus;

use leaderelection::causes::with_causes;
use leaderelection::{ConfigError, LockError, StoreError, StoreErrorKind};
use leaderelection_backends::url::UrlError;

use crate::cause::Cause;
use crate::environment;

/// The name of this program.
pub(crate) const PROGRAM: &str = "leaderelect";

/// The exit codes, for `--help` and the man page. The codes that `run` adds to those of its command are far
/// from the codes that commands usually choose.
pub(crate) const TABLE: &str = "\
Exit codes:
    0  done; `probe`: the store is fit
    1  the store is unfit for leader election; `health`: the answer is no;
       `status --exit-code`: nobody leads
   64  invalid arguments or settings, such as an unreadable file or a missing
       directory of a file:// lock; `transfer`, `release`: no such lock;
       `history`: none was recorded
   65  the lock's object is not a leader election record
   69  the store is unreachable or denies access, or another service has the
       lock; `probe`: inconclusive
   74  an error of this machine, such as output that cannot be written
   75  another candidate holds the lock, or the wait timed out
   79  leadership was lost, and the command was killed
   80  processes of the command cannot be killed; the lease was not released
  124  the command was killed after --max-runtime
  126  the command cannot be run
  127  command not found
  128+n  killed by signal n (for `run`: its command)
Otherwise `run` exits with the code of its command.";

/// The result with which the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The requested action is done.
    Done,
    /// The store breaks the contract that keeps leaders exclusive.
    Unfit,
    /// A script asked whether somebody leads.
    NobodyLeads,
    /// The command line or a setting is invalid, or what it names does not exist.
    Usage,
    /// An object exists, but is not a record.
    NotARecord,
    /// The store did not answer, or refuses.
    Unavailable,
    /// This machine is at fault.
    Internal,
    /// Another candidate holds the lock.
    Held,
    /// Leadership was lost.
    Lost,
    /// Processes of the command could not be ended.
    LeftRunning,
    /// The command's own code.
    Code(u8),
}

impl Exit {
    /// The code that shells report for a process that died of `signal`.
    pub(crate) fn by_signal(signal: i32) -> Self {
        Self::Code(u8::try_from(128 + signal).unwrap_or(u8::MAX))
    }

    /// The code that a shell would report for the end of a process.
    #[cfg(unix)]
    pub(crate) fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(u8::try_from(code).unwrap_or(u8::MAX)),
            (None, Some(signal)) => Self::by_signal(signal),
            (None, None) => Self::Internal,
        }
    }

    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Unfit | Self::NobodyLeads => 1,
            Self::Usage => 64,
            Self::NotARecord => 65,
            Self::Unavailable => 69,
            Self::Internal => 74,
            Self::Held => 75,
            Self::Lost => 79,
            Self::LeftRunning => 80,
            Self::Code(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The reason for which the process did not do what was asked, and the next step.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    message: String,
    /// The fault of the store or the lock, if there is one.
    pub(crate) cause: Option<Cause>,
}

impl Failure {
    /// Creates a failure. The message is in lower case, without a full stop, and contains no secret.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), cause: None }
    }

    /// The same failure in other words.
    pub(crate) fn in_words(self, message: String) -> Self {
        Self { message, ..self }
    }

    fn of_store(kind: StoreErrorKind, message: String) -> Self {
        Self { cause: Some(Cause::of(kind)), ..Self::new(exit_of(kind), message) }
    }

    /// This machine is at fault.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Exit::Internal, message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        Self::of_store(error.kind(), error.in_full())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::of_store(error.kind(), with_causes(&error))
    }
}

impl From<UrlError> for Failure {
    fn from(error: UrlError) -> Self {
        Self::usage(error.to_string())
    }
}

/// Fields of a configuration, and the options that set them.
pub(crate) type Options = [(&'static str, &'static str)];

/// The options of an election. The timings come first.
const OPTIONS: &Options = &[
    ("lease_duration", "--lease-duration"),
    ("renew_deadline", "--renew-deadline"),
    ("retry_period", "--retry-period"),
    ("request_timeout", "--request-timeout"),
    ("follower_interval", "--follower-interval"),
    ("trust_store_clock", "--trust-store-clock"),
    ("identity", "--identity"),
    ("rank", "--rank"),
    ("service", "--service"),
    ("needed", "--quorum"),
    ("slots", "--slots"),
    ("advertise_to_clients", "--advertise-to-clients"),
    ("advertise", "--advertise"),
];
const TIMINGS: usize = 5;

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let text = in_options(&error, OPTIONS);
        let timing = OPTIONS[..TIMINGS].iter().find(|(field, _)| *field == error.field());
        Self::usage(match timing {
            Some((_, option)) => format!("{text}; set {option}, or remove the timing options"),
            None => text,
        })
    }
}

/// Names options instead of fields, or the variables that have set them.
pub(crate) fn in_options(error: &ConfigError, options: &Options) -> String {
    error.in_words(|field| {
        let (_, option) = options.iter().find(|(name, _)| *name == field)?;
        Some(environment::source(option).unwrap_or_else(|| (*option).to_owned()))
    })
}

/// Converts an error of writing output. A reader that has closed the pipe is no failure.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let exit = if error.kind() == io::ErrorKind::BrokenPipe { Exit::Done } else { Exit::Internal };
        Self::new(exit, format!("cannot write to standard output: {error}"))
    }
}

/// The exit code for an error of the store.
pub(crate) fn exit_of(kind: StoreErrorKind) -> Exit {
    match kind {
        StoreErrorKind::Unreadable => Exit::NotARecord,
        StoreErrorKind::Conflict => Exit::Held,
        _ => Exit::Unavailable,
    }
}
