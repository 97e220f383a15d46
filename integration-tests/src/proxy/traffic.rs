//! What passed through a proxy.

use std::time::Duration;

use bytes::Bytes;
use hyper::{HeaderMap, Method};
use leaderelection::LeaderElectionRecord;
use leaderelection::clock::LocalInstant;

use super::Fault;

/// A request, as the client sent it.
#[derive(Clone, Debug)]
pub struct Request {
    /// Such as `PUT`.
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// All headers.
    pub headers: HeaderMap,
    /// The content.
    pub body: Bytes,
}

/// What a request is for, as far as an election goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads something.
    Read,
    /// Writes the first record.
    Create,
    /// Begins a term over an older record.
    Takeover,
    /// Renews a lease.
    Renewal,
    /// Gives a lease back.
    Release,
    /// Does something with other objects than records.
    Other,
}

/// A request, and what became of it.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// When the proxy had read it: after it was sent.
    pub arrived: LocalInstant,
    /// What was sent.
    pub request: Request,
    /// What it is for.
    pub kind: Kind,
    /// What was done to it.
    pub fault: Option<Fault>,
    /// The statuses with which the server answered, one for every delivery.
    pub answers: Vec<u16>,
    /// The status that the client was told, if it was.
    pub told: Option<u16>,
}

impl Request {
    /// The value of a header, if there is one that can be read.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// What it is for.
    #[must_use]
    pub fn kind(&self) -> Kind {
        if self.method == Method::GET {
            return Kind::Read;
        }
        let Some(record) = self.record() else { return Kind::Other };
        if record.is_released() {
            Kind::Release
        } else if self.demands_absence() {
            Kind::Create
        } else if record.acquire_time == record.renew_time {
            Kind::Takeover
        } else {
            Kind::Renewal
        }
    }

    /// The record in the body, which in a multipart upload is a part of it.
    #[must_use]
    pub fn record(&self) -> Option<LeaderElectionRecord> {
        const FIRST_KEY: &[u8] = br#"{"holderIdentity""#;
        let start = self.body.windows(FIRST_KEY.len()).position(|bytes| bytes == FIRST_KEY)?;
        let end = self.body.iter().rposition(|&byte| byte == b'}')?;
        LeaderElectionRecord::from_json(&self.body[start..=end], Duration::MAX).ok()
    }

    /// What is read or written: the target without what says how.
    #[must_use]
    pub(super) fn object(&self) -> String {
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let name = query.split('&').find(|parameter| parameter.starts_with("name="));
        format!("{path}?{}", name.unwrap_or_default())
    }

    pub(super) fn is_write(&self) -> bool {
        self.method == Method::PUT || self.method == Method::POST || self.method == Method::DELETE
    }

    fn demands_absence(&self) -> bool {
        self.headers.contains_key("if-none-match") || self.target.contains("ifGenerationMatch=0")
    }
}

impl Exchange {
    /// Whether the server carried it out at least once.
    #[must_use]
    pub fn landed(&self) -> bool {
        self.answers.iter().any(|answer| (200..300).contains(answer))
    }

    /// Whether the client was told the truth: what the server answered first.
    #[must_use]
    pub fn was_honest(&self) -> bool {
        self.told.is_some() && self.told.as_ref() == self.answers.first()
    }
}
