//! A change as a CloudEvent 1.0, in the JSON format.

use std::time::UNIX_EPOCH;

use leaderelection::clock::{Clock as _, SystemClock};
use serde::Serialize;

/// The media type of an event in structured mode.
pub(super) const MEDIA_TYPE: &str = "application/cloudevents+json";

#[derive(Serialize)]
pub(super) struct CloudEvent<'a, T> {
    specversion: &'static str,
    id: String,
    /// The lock's URL, without secrets.
    source: &'a str,
    r#type: String,
    time: &'a str,
    datacontenttype: &'static str,
    data: T,
}

/// Numbers the events of one watch, so that a receiver knows an event that it gets twice.
#[derive(Debug)]
pub(super) struct Numbers {
    /// The start of this watch, which tells the watches of one lock apart.
    began: u128,
    process: u32,
    last: u64,
}

impl Numbers {
    pub(super) fn new() -> Self {
        let now = SystemClock.wall_time();
        let began = std::time::SystemTime::from(now).duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        Self { began, process: std::process::id(), last: 0 }
    }

    /// The next event, of the lock `source`.
    pub(super) fn next<'a, T: Serialize>(
        &mut self,
        source: &'a str,
        time: &'a str,
        name: &str,
        data: T,
    ) -> CloudEvent<'a, T> {
        self.last += 1;
        CloudEvent {
            specversion: "1.0",
            id: format!("{:x}-{:x}-{}", self.began, self.process, self.last),
            source,
            r#type: format!("leaderelection.{name}"),
            time,
            datacontenttype: "application/json",
            data,
        }
    }
}
