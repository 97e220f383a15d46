//! How far this machine's clock and the store's are apart, from the `Date` of its answers.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::with_causes;
use leaderelection_backends::url::Location;
use reqwest::header::DATE;
use reqwest::redirect::Policy;
use serde_json::{Value, json};

/// As often as is needed to find the moment at which the second changes, more or less.
const REQUESTS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(125);

/// Beyond this Amazon and Azure refuse what we sign.
const REFUSED_FROM: f64 = 15.0 * 60.0;

/// What the answers told.
#[derive(Debug)]
pub(super) enum ClockOffset {
    /// The store is on this machine.
    NotApplicable,
    Unknown {
        why: String,
    },
    /// Our clock minus the store's, in seconds: in between.
    Known {
        least: f64,
        most: f64,
    },
}

impl ClockOffset {
    /// Asks the store's endpoint, with no credentials: a refusal has a date too.
    pub(super) async fn measure(location: &Location, patience: Duration) -> Self {
        let Some(endpoint) = endpoint(location) else { return Self::NotApplicable };
        match offsets(&endpoint, patience).await {
            Ok(offsets) => Self::of(&offsets),
            Err(why) => Self::Unknown { why },
        }
    }

    /// Every answer narrows it down, if the store's servers agree with each other.
    fn of(offsets: &[(f64, f64)]) -> Self {
        let all = || offsets.iter().copied();
        let [least, most] = [
            all().map(|offset| offset.0).fold(f64::MIN, f64::max),
            all().map(|offset| offset.1).fold(f64::MAX, f64::min),
        ];
        if least <= most {
            return Self::Known { least, most };
        }
        let [least, most] = [
            all().map(|offset| offset.0).fold(f64::MAX, f64::min),
            all().map(|offset| offset.1).fold(f64::MIN, f64::max),
        ];
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
                write!(f, "ours is {ours:.1} s {direction} the store's, give or take {error:.1} s; ")?;
                if ours > REFUSED_FROM / 3.0 {
                    return f.write_str("set it right: stores refuse signed requests that are 15 minutes off");
                }
                f.write_str("no election depends on it")
            }
        }
    }
}

/// Where to ask; `None` for a store on this machine.
fn endpoint(location: &Location) -> Option<String> {
    match location {
        #[cfg(feature = "s3")]
        Location::S3(location) => {
            let given = location.endpoint.clone();
            let region = || location.region.clone().or_else(|| variable("AWS_REGION"));
            given.or_else(|| variable("AWS_ENDPOINT_URL_S3")).or_else(|| variable("AWS_ENDPOINT_URL")).or_else(|| {
                let region = region().map(|region| format!(".{region}")).unwrap_or_default();
                let china = if region.starts_with(".cn-") { ".cn" } else { "" };
                Some(format!("https://s3{region}.amazonaws.com{china}"))
            })
        }
        #[cfg(feature = "gcs")]
        Location::Gcs(_) => Some(match variable("STORAGE_EMULATOR_HOST") {
            None => "https://storage.googleapis.com".to_owned(),
            Some(url) if url.contains("://") => url,
            Some(host) => format!("http://{host}"),
        }),
        #[cfg(feature = "azure")]
        Location::Azure(location) => Some(location.container_url.clone()),
        _ => None,
    }
}

#[cfg(any(feature = "gcs", feature = "s3"))]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

async fn offsets(endpoint: &str, patience: Duration) -> Result<Vec<(f64, f64)>, String> {
    let client = reqwest::Client::builder().redirect(Policy::none()).timeout(patience).build();
    let client = client.map_err(|error| with_causes(&error))?;
    let mut offsets = Vec::new();
    for _ in 0..REQUESTS {
        let sent = SystemClock.wall_time();
        let answer = client.head(endpoint).send().await.map_err(|error| with_causes(&error.without_url()))?;
        let received = SystemClock.wall_time();
        let date = answer.headers().get(DATE).and_then(|date| date.to_str().ok()).map(httpdate::parse_http_date);
        let Some(Ok(date)) = date else { return Err("the store's answers have no Date".to_owned()) };
        offsets.push(offset(sent, received, date.into()));
        tokio::time::sleep(PAUSE).await;
    }
    Ok(offsets)
}

/// The store wrote `date`, without the fraction of the second, between `sent` and `received`.
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
        assert!(text.contains("2.0 s ahead of the store's, give or take 3.0 s"), "{text}");
    }

    #[test]
    fn a_clock_that_requests_are_soon_refused_for_is_to_be_set_right() {
        let text = ClockOffset::of(&[(-601.0, -600.0)]).to_string();
        assert!(text.contains("behind the store's") && text.contains("set it right"), "{text}");
    }

    #[test]
    fn local_stores_have_our_own_clock() {
        assert_eq!(endpoint(&"file:///a/b".parse().unwrap()), None);
        assert_eq!(endpoint(&"memory:a".parse().unwrap()), None);
    }

    #[cfg(all(feature = "s3", feature = "azure"))]
    #[test]
    fn others_are_asked_where_they_are() {
        let asked = |url: &str| endpoint(&url.parse().unwrap()).unwrap();
        assert_eq!(asked("s3://bucket/key?endpoint=http://127.0.0.1:1"), "http://127.0.0.1:1");
        assert_eq!(asked("az://account/container/a?sig=secret"), "https://account.blob.core.windows.net/container");
    }
}
