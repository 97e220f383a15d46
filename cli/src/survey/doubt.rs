//! Signs after one look that a holder is dead.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::lock::view::{State, View};
use crate::pages::{between, words};

/// The grain of the ages that HTTP stores tell.
const GRAIN: Duration = Duration::from_secs(1);

/// A sign that the holder of a lease does not renew it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The store says how old the last write is, and compares no other clock with its own.
    ByStore(Duration),
    /// The holder wrote when it last renewed, by its own clock, which may be wrong.
    ByHolder(Duration),
}

impl View {
    /// A sign that the holder is dead. The store's date counts more than the clock of the holder. `store_age` is the
    /// age of the last renewal by the store's clock.
    pub(crate) fn doubt(&self, store_age: Option<Duration>, now: DateTime<Utc>) -> Option<Doubt> {
        let lease = self.lease().filter(|_| self.state == State::Held && self.holder.is_some())?;
        match store_age {
            Some(age) => (age > lease.saturating_add(GRAIN)).then_some(Doubt::ByStore(age)),
            None => {
                let age = between(self.renewed()?, now);
                (age > lease).then_some(Doubt::ByHolder(age))
            }
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByStore(age) => write!(f, "has not renewed for {}, by the store's clock", words(age)),
            Self::ByHolder(age) => write!(f, "last renewed {} ago, by its own clock", words(age)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use clap::builder::TypedValueParser as _;
    use leaderelection::LeaderElectionRecord;

    use super::*;
    use crate::lock::PrefixUrl;

    #[test]
    fn the_store_counts_more_than_the_clock_of_the_holder() {
        let second = Duration::from_secs(1);
        let renewed = DateTime::UNIX_EPOCH;
        let mut record = LeaderElectionRecord::new("node-1", 15 * second);
        record.renew_time = Some(renewed);
        let prefix = PrefixUrl::parser().parse_ref(&clap::Command::new("x"), None, OsStr::new("memory:")).unwrap();
        let view = View::of_record(&prefix.at("a"), &record);
        let doubt = |age: Option<u32>, now: u32| view.doubt(age.map(|age| age * second), renewed + now * second);
        assert_eq!(doubt(None, 15), None);
        assert_eq!(doubt(None, 1_500), Some(Doubt::ByHolder(1_500 * second)));
        assert_eq!(doubt(Some(3), 1_500), None, "the clock of the holder is wrong");
        assert_eq!(doubt(Some(16), 1), None, "an age may be a second too large");
        assert_eq!(doubt(Some(1_500), 1), Some(Doubt::ByStore(1_500 * second)));
        record.holder_identity = String::new();
        assert_eq!(View::of_record(&prefix.at("a"), &record).doubt(Some(1_500 * second), renewed), None);
    }
}
