//! The messages between the program `contender` and the test that runs five of them against each other.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use leaderelection::Timings;
use leaderelection::clock::LocalInstant;

/// One line of a contender's standard output.
///
/// Its instants are those of a clock that all processes of the machine share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// At this moment the process was inside its leadership window, which ends at `until` unless the lease is
    /// renewed.
    Inside {
        /// The fencing token of the term.
        token: u64,
        /// The moment of the report.
        at: LocalInstant,
        /// The end of the window.
        until: LocalInstant,
    },
    /// The log has accepted the entry with this number.
    Appended {
        /// The fencing token of the term.
        token: u64,
        /// The entry's number in the term.
        number: u64,
    },
    /// The log has refused an entry, because a later leader has written.
    Fenced {
        /// The fencing token of the term.
        token: u64,
    },
    /// The term is over, and its work has ended.
    Ended {
        /// The fencing token of the term.
        token: u64,
        /// The moment of the end.
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

/// Returns timings in milliseconds: lease duration, renew deadline and retry period.
///
/// # Panics
///
/// If they do not fit each other.
#[must_use]
pub fn timings(lease: u64, deadline: u64, retry: u64) -> Timings {
    let [lease, deadline, retry] = [lease, deadline, retry].map(Duration::from_millis);
    Timings::new(lease, deadline, retry).expect("timings that fit")
}
