//! What the program `contender` and the test that lets five of them fight say to each other.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use leaderelection::clock::LocalInstant;

/// One line of a contender's standard output.
///
/// Its instants are those of a clock that all processes of the machine share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// At this moment it was inside its leadership window, which ends then unless the lease is renewed.
    Inside {
        /// The term's token.
        token: u64,
        /// The moment.
        at: LocalInstant,
        /// The end.
        until: LocalInstant,
    },
    /// The log has taken its entry with this number.
    Appended {
        /// The term's token.
        token: u64,
        /// The entry's number in the term.
        number: u64,
    },
    /// The log has told it that a later leader has written.
    Fenced {
        /// The term's token.
        token: u64,
    },
    /// Its term is over, and its work has ended.
    Ended {
        /// The term's token.
        token: u64,
        /// The moment.
        at: LocalInstant,
    },
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inside { token, at, until } => write!(f, "inside {token} {} {}", at.as_nanos(), until.as_nanos()),
            Self::Appended { token, number } => write!(f, "appended {token} {number}"),
            Self::Fenced { token } => write!(f, "fenced {token}"),
            Self::Ended { token, at } => write!(f, "ended {token} {}", at.as_nanos()),
        }
    }
}

impl FromStr for Report {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let unknown = || format!("not a report: {line:?}");
        let mut words = line.split(' ');
        let name = words.next();
        let numbers = words.map(str::parse).collect::<Result<Vec<u64>, _>>().map_err(|_| unknown())?;
        let instant = LocalInstant::from_nanos;
        Ok(match (name, &numbers[..]) {
            (Some("inside"), &[token, at, until]) => Self::Inside { token, at: instant(at), until: instant(until) },
            (Some("appended"), &[token, number]) => Self::Appended { token, number },
            (Some("fenced"), &[token]) => Self::Fenced { token },
            (Some("ended"), &[token, at]) => Self::Ended { token, at: instant(at) },
            _ => return Err(unknown()),
        })
    }
}

/// What the numbers of a lease are.
#[derive(Clone, Copy, Debug)]
pub struct Timings {
    /// The lease duration.
    pub lease: Duration,
    /// The renew deadline.
    pub deadline: Duration,
    /// The retry period.
    pub retry: Duration,
}

impl Timings {
    /// As arguments of the program.
    #[must_use]
    pub fn to_args(self) -> [String; 3] {
        [self.lease, self.deadline, self.retry].map(|duration| duration.as_millis().to_string())
    }
}
