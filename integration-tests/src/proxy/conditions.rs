//! Servers that accept conditional writes and do not keep the conditions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::traffic::Request;
use crate::mutex::lock;

/// The server's apparent treatment of the conditions of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conditions {
    /// The server's real behaviour.
    #[default]
    Enforced,
    /// All conditions are ignored.
    Ignored,
    /// Conditions are ignored while another write to the same object is in progress, as on a server that checks
    /// first and writes later.
    IgnoredUnderConcurrency,
    /// The ETag of a condition is compared without its quotes, as on Ceph's gateway. With quotes it never matches.
    BareEtags,
}

/// The writes in progress, by object.
#[derive(Clone, Debug, Default)]
pub(super) struct Writes(Arc<Mutex<BTreeMap<String, usize>>>);

/// A write that is in progress until this value is dropped.
pub(super) struct InFlight {
    writes: Writes,
    object: String,
}

impl Writes {
    /// Begins a write; returns the number of other writes to the same object that are in progress.
    pub(super) fn begin(&self, object: String) -> (InFlight, usize) {
        let mut writes = lock(&self.0);
        let count = writes.entry(object.clone()).or_default();
        *count += 1;
        (InFlight { writes: self.clone(), object }, *count - 1)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(count) = lock(&self.writes.0).get_mut(&self.object) {
            *count -= 1;
        }
    }
}

/// Returns the request with quotes around its ETag; `None` if it has quotes already.
pub(super) fn quoted(request: &Request) -> Option<Request> {
    let mut request = request.clone();
    if let Some(etag) = request.headers.get("if-match") {
        let etag = etag.to_str().ok().filter(|etag| !etag.starts_with('"'))?;
        let etag = format!("\"{etag}\"").parse().ok()?;
        request.headers.insert("if-match", etag);
    }
    Some(request)
}

/// Returns the request without its conditions.
pub(super) fn stripped(request: &Request) -> Request {
    let mut request = request.clone();
    request.headers.remove("if-match");
    request.headers.remove("if-none-match");
    if let Some((path, query)) = request.target.split_once('?') {
        let kept = query.split('&').filter(|parameter| !parameter.starts_with("ifGenerationMatch="));
        request.target = format!("{path}?{}", kept.collect::<Vec<_>>().join("&"));
    }
    request
}
