//! The state of the server: its one bucket, its faults and the requests so far.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use tokio::sync::watch;

pub(super) type Response = hyper::Response<BoxBody<Bytes, Infallible>>;

/// The only bucket.
pub const BUCKET: &str = "bucket";

/// The fault of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An HTTP status, before any effect.
    Status(u16),
    /// A gRPC code and message, before any effect.
    Grpc(u16, &'static str),
    /// The request is carried out, and the connection is closed before the answer.
    LoseAnswer,
    /// The request is carried out, and answered with 503.
    AnswerUnavailable,
    /// No answer, and no effect.
    Hang,
}

/// The options of the server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// An object accepts only one write per second, as at Google.
    pub limits_writes: bool,
    /// The largest number of objects in a page of a listing, if not a thousand.
    pub page_size: Option<usize>,
}

impl Options {
    pub(super) fn interval(&self) -> Option<Duration> {
        self.limits_writes.then_some(Duration::from_secs(1))
    }
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) options: Options,
    pub(super) bucket: Mutex<Bucket>,
    pub(super) faults: Mutex<VecDeque<Fault>>,
    pub(super) requests: Mutex<Vec<String>>,
    pub(super) is_frozen: watch::Sender<bool>,
}

#[derive(Debug, Default)]
pub(super) struct Bucket {
    pub(super) objects: BTreeMap<String, Object>,
    writes: i64,
    pub(super) refused_writes: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) body: Bytes,
    pub(super) generation: i64,
    written: Instant,
}

pub(super) const TOO_SOON: &str =
    "The object exceeded the rate limit for object mutation operations (create, update, and delete).";

/// The reason for which a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Precondition,
    TooSoon,
}

impl Bucket {
    /// Writes if the object has the generation `expected`; 0 means that the object must not exist.
    pub(super) fn write(
        &mut self,
        name: &str,
        expected: Option<i64>,
        body: Bytes,
        interval: Option<Duration>,
    ) -> Result<i64, Refusal> {
        self.check(name, expected, interval)?;
        self.writes += 1;
        // The generation looks like Google's, which are microseconds.
        let generation = 1_770_000_000_000_000 + self.writes;
        self.objects.insert(name.to_owned(), Object { body, generation, written: Instant::now() });
        Ok(generation)
    }

    /// Checks that an object with the generation `expected` may be written or deleted now.
    pub(super) fn check(
        &mut self,
        name: &str,
        expected: Option<i64>,
        interval: Option<Duration>,
    ) -> Result<(), Refusal> {
        let object = self.objects.get(name);
        let generation = object.map_or(0, |object| object.generation);
        if expected.is_some_and(|expected| expected != generation) {
            return Err(Refusal::Precondition);
        }
        if interval.is_some_and(|interval| object.is_some_and(|object| object.written.elapsed() < interval)) {
            self.refused_writes += 1;
            return Err(Refusal::TooSoon);
        }
        Ok(())
    }
}
