//! The traffic through a proxy.

use std::time::Duration;

use bytes::Bytes;
use hyper::{HeaderMap, Method};
use leaderelection::LeaderElectionRecord;
use leaderelection::clock::LocalInstant;
use serde_json::Value;

use super::Fault;

/// A request as the client sent it.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method, such as `PUT`.
    pub method: Method,
    /// The path and the query.
    pub target: String,
    /// All headers.
    pub headers: HeaderMap,
    /// The content.
    pub body: Bytes,
}

/// The purpose of a request in an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A read.
    Read,
    /// A write of the first record.
    Create,
    /// A write that begins a term over an older record.
    Takeover,
    /// A write that renews a lease.
    Renewal,
    /// A write that releases a lease.
    Release,
    /// A request that concerns no record.
    Other,
}

impl Kind {
    /// The purpose of a write of this record, which may demand that there is no earlier one.
    pub(crate) fn of_write(record: &LeaderElectionRecord, demands_absence: bool) -> Self {
        if record.is_released() {
            Self::Release
        } else if demands_absence {
            Self::Create
        } else if record.acquire_time == record.renew_time {
            Self::Takeover
        } else {
            Self::Renewal
        }
    }
}

/// A request and its outcome.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The moment at which the proxy had read the request, after the client sent it.
    pub arrived: LocalInstant,
    /// The request.
    pub request: Request,
    /// The purpose of the request.
    pub kind: Kind,
    /// The fault that was applied to the request.
    pub fault: Option<Fault>,
    /// The statuses with which the server answered, one for every delivery.
    pub answers: Vec<u16>,
    /// The moment of the last of these answers.
    pub answered: Option<LocalInstant>,
    /// The status that the client got, if it got an answer.
    pub told: Option<u16>,
}

impl Request {
    /// The value of a header, if the header exists and is readable.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The purpose of the request.
    #[must_use]
    pub fn kind(&self) -> Kind {
        if self.method == Method::GET {
            return if self.opens_session() { Kind::Other } else { Kind::Read };
        }
        self.record().map_or(Kind::Other, |record| Kind::of_write(&record, self.demands_absence()))
    }

    /// Returns `true` for the opening of a session of a directory bucket, which concerns no object.
    #[must_use]
    pub fn opens_session(&self) -> bool {
        self.method == Method::GET && self.target.ends_with("?session")
    }

    /// The record in the body. In a multipart upload, the record is one part of the body, and in a Lease it is an
    /// annotation.
    #[must_use]
    pub fn record(&self) -> Option<LeaderElectionRecord> {
        if let Some(lease) = self.lease() {
            let record = lease["metadata"]["annotations"]["leaderelection/record"].as_str()?;
            return LeaderElectionRecord::from_json(record.as_bytes(), Duration::MAX).ok();
        }
        const FIRST_KEY: &[u8] = br#"{"holderIdentity""#;
        let start = self.body.windows(FIRST_KEY.len()).position(|bytes| bytes == FIRST_KEY)?;
        let end = self.body.iter().rposition(|&byte| byte == b'}')?;
        LeaderElectionRecord::from_json(&self.body[start..=end], Duration::MAX).ok()
    }

    /// The Kubernetes Lease in the body.
    fn lease(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok().filter(|body: &Value| body["kind"] == "Lease")
    }

    /// Returns `true` for a page of a listing of S3.
    #[must_use]
    pub fn lists(&self) -> bool {
        self.method == Method::GET && self.target.contains("list-type=2")
    }

    /// The object that is read or written: the target without its parameters.
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
        // Every write of a sequenced lock creates an object. The first one has the number 1.
        if self.headers.contains_key("x-oss-forbid-overwrite") {
            return self.target.ends_with("/00000000000000000001");
        }
        self.headers.contains_key("if-none-match") || self.target.contains("ifGenerationMatch=0")
            // A Lease is updated with PUT.
            || self.method == Method::POST && self.lease().is_some()
    }
}

impl Exchange {
    /// Returns `true` if the server carried out the request at least once.
    #[must_use]
    pub fn committed(&self) -> bool {
        self.answers.iter().any(|answer| (200..300).contains(answer))
    }

    /// Returns `true` if the client got the server's first answer.
    #[must_use]
    pub fn was_honest(&self) -> bool {
        self.told.is_some() && self.told.as_ref() == self.answers.first()
    }
}
