//! Timings in a configuration file: `{ "lease_duration": "15s" }`.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Timings, Unchecked};
use crate::timings::config_error::ConfigError;
use crate::util::duration::parse_duration;

/// Timings with durations as text. They are parsed in a second step, so that an error can name the field and its value.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    lease_duration: Option<Text>,
    renew_deadline: Option<Text>,
    retry_period: Option<Text>,
    request_timeout: Option<Text>,
}

impl From<Timings> for Written {
    fn from(timings: Timings) -> Self {
        let text = |duration| Some(Text(humantime::format_duration(duration).to_string()));
        Self {
            lease_duration: text(timings.lease_duration),
            renew_deadline: text(timings.renew_deadline),
            retry_period: text(timings.retry_period),
            request_timeout: text(timings.request_timeout),
        }
    }
}

impl TryFrom<Written> for Timings {
    type Error = ConfigError;

    fn try_from(written: Written) -> Result<Self, ConfigError> {
        let default = Unchecked::default();
        let read = |field, text: Option<Text>| text.map(|text| text.read(field)).transpose();
        Unchecked {
            lease_duration: read("lease_duration", written.lease_duration)?.unwrap_or(default.lease_duration),
            renew_deadline: read("renew_deadline", written.renew_deadline)?.unwrap_or(default.renew_deadline),
            retry_period: read("retry_period", written.retry_period)?.unwrap_or(default.retry_period),
            request_timeout: read("request_timeout", written.request_timeout)?,
        }
        .check()
    }
}

/// A single duration in a configuration file.
#[cfg(feature = "serde")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Text")]
pub(crate) struct Human(pub(crate) Duration);

#[cfg(feature = "serde")]
impl TryFrom<Text> for Human {
    type Error = String;

    fn try_from(text: Text) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

/// A duration that is not parsed yet. A bare number is accepted, so that the later error can ask for its unit.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Text(String);

impl Text {
    fn read(&self, field: &'static str) -> Result<Duration, ConfigError> {
        self.parse().map_err(|problem| ConfigError::new(field, problem))
    }

    fn parse(&self) -> Result<Duration, String> {
        let text = &self.0;
        parse_duration(text).map_err(|error| {
            format!("({text}) is not a duration: {error}; write a number and a unit, such as 15s or 400ms")
        })
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as \"15s\" or \"400ms\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.to_owned()))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Text, E> {
        Ok(Text(number.to_string()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Text, E> {
        Ok(Text(number.to_string()))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Text, E> {
        Ok(Text(number.to_string()))
    }
}
