//! The difference between this machine's clock and the store's clock, from the `Date` of the store's answers.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use leaderelection::causes::with_causes;
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection_backends::url::Location;
use reqwest::header::DATE;
use serde_json::{Value, json};

use crate::client::client_for;

/// The number of requests: enough to find roughly the moment at which the second changes.
const REQUESTS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(125);

/// The offset from which Amazon and Azure refuse signed requests.
const REFUSED_FROM: f64 = 15.0 * 60.0;

/// The result of the measurement.
#[derive(Debug)]
pub(super) enum ClockOffset {
    /// The store is on this machine, so the clocks are the same.
    NotApplicable,
    Unknown {
        why: String,
    },
    /// The range of our clock minus the store's clock, in seconds.
    Known {
        least: f64,
        most: f64,
    },
}

impl ClockOffset {
    /// Asks the store's endpoint, without credentials: a refusal has a date too.
    pub(super) async fn measure(location: &Location, patience: Duration) -> Self {
        let endpoint = match location.endpoint().await {
            Ok(Some(endpoint)) => endpoint,
            Ok(None) => return Self::NotApplicable,
            Err(error) => return Self::Unknown { why: with_causes(&error) },
        };
        match offsets(&endpoint, patience).await {
            Ok(offsets) => Self::of(&offsets),
            Err(why) => Self::Unknown { why },
        }
    }

    /// Intersects the ranges of all answers, if the clocks of the store's servers agree with each other.
    fn of(offsets: &[(f64, f64)]) -> Self {
        let narrow = |(least, most): (f64, f64), offset: &(f64, f64)| (least.max(offset.0), most.min(offset.1));
        let widen = |(least, most): (f64, f64), offset: &(f64, f64)| (least.min(offset.0), most.max(offset.1));
        let (least, most) = offsets.iter().fold((f64::MIN, f64::MAX), narrow);
        if least <= most {
            return Self::Known { least, most };
        }
        let (least, most) = offsets.iter().fold((f64::MAX, f64::MIN), widen);
        Self::Known { least, most }
    }

    pub(super) fn as_json(&self) -> Value {
        match self {
            Self::NotApplicable => Value::Null,
            Self::Unknown { why } => json!({ "problem": why }),
            Self::Known { least, most } => {
                json!({ "aheadOfStoreSeconds": f64::midpoint(*least, *most), "errorSeconds": (most - least) / 2.0 })
            }
        }
    }
}

impl fmt::Display for ClockOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotApplicable => f.write_str("not applicable, the store is on this machine"),
            Self::Unknown { why } => write!(f, "unknown: {why}"),
            Self::Known { least, most } => {
                let (middle, error) = (f64::midpoint(*least, *most), (most - least) / 2.0);
                let direction = if middle < 0.0 { "behind" } else { "ahead of" };
                let ours = middle.abs();
                write!(f, "this machine's clock is {ours:.1} s {direction} the store's (± {error:.1} s); ")?;
                if ours > REFUSED_FROM / 3.0 {
                    return f.write_str("correct it: stores reject signed requests that are 15 minutes off");
                }
                f.write_str("no election depends on it")
            }
        }
    }
}

async fn offsets(endpoint: &str, patience: Duration) -> Result<Vec<(f64, f64)>, String> {
    let client = client_for(endpoint, patience).map_err(|error| with_causes(&error))?;
    let mut offsets = Vec::new();
    for _ in 0..REQUESTS {
        let sent = SystemClock.wall_time();
        let answer = client.head(endpoint).send().await.map_err(|error| with_causes(&error.without_url()))?;
        let received = SystemClock.wall_time();
        let date = answer.headers().get(DATE).and_then(|date| date.to_str().ok()).map(httpdate::parse_http_date);
        let Some(Ok(date)) = date else { return Err("the store's answers have no Date header".to_owned()) };
        offsets.push(offset(sent, received, date.into()));
        tokio::time::sleep(PAUSE).await;
    }
    Ok(offsets)
}

/// Returns the range of the offset: the store wrote `date`, without the fraction of the second, between `sent`
/// and `received`.
fn offset(sent: DateTime<Utc>, received: DateTime<Utc>, date: DateTime<Utc>) -> (f64, f64) {
    let seconds = |time: DateTime<Utc>| (time - date).as_seconds_f64();
    (seconds(sent) - 1.0, seconds(received))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + Duration::from_millis(millis)
    }

    #[test]
    fn answers_around_a_change_of_the_second_narrow_the_offset_down() {
        // Our clock is 3.0 s ahead; each answer takes 20 ms.
        let offsets: Vec<_> = (0..8)
            .map(|n| 10_300 + n * 145)
            .map(|sent| offset(at(sent), at(sent + 20), at((sent + 10 - 3_000) / 1_000 * 1_000)))
            .collect();
        let ClockOffset::Known { least, most } = ClockOffset::of(&offsets) else { panic!("unknown") };
        assert!(least <= 3.0 && 3.0 <= most, "{least} {most}");
        assert!(most - least < 0.2, "{least} {most}");
    }

    #[test]
    fn servers_that_disagree_widen_it() {
        let text = ClockOffset::of(&[(-1.0, 0.1), (4.0, 5.1)]).to_string();
        assert!(text.contains("2.0 s ahead of the store's (± 3.0 s)"), "{text}");
    }

    #[test]
    fn a_clock_that_requests_are_soon_refused_for_is_to_be_set_right() {
        let text = ClockOffset::of(&[(-601.0, -600.0)]).to_string();
        assert!(text.contains("behind the store's") && text.contains("correct it"), "{text}");
    }

    #[tokio::test]
    async fn local_stores_have_our_own_clock() {
        for url in ["file:///a/b", "memory:a"] {
            let offset = ClockOffset::measure(&url.parse().unwrap(), Duration::ZERO).await;
            assert!(matches!(offset, ClockOffset::NotApplicable), "{url}: {offset:?}");
        }
    }
}
