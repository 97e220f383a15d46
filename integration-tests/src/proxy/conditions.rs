//! Servers that promise to write under a condition, and do not keep it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::lock;
use super::traffic::Request;

/// How the server seems to treat the conditions of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conditions {
    /// As it does.
    #[default]
    Honoured,
    /// As if there were none.
    Ignored,
    /// As if there were none while another write to the same object is under way: a server that looks
    /// first and writes then.
    IgnoredUnderConcurrency,
}

/// The writes that are under way, by object.
#[derive(Clone, Debug, Default)]
pub(super) struct Writes(Arc<Mutex<BTreeMap<String, usize>>>);

/// A write that is under way until this is dropped.
pub(super) struct UnderWay {
    writes: Writes,
    object: String,
}

impl Writes {
    /// Counts a write in; returns how many others to the same object are under way.
    pub(super) fn begin(&self, object: String) -> (UnderWay, usize) {
        let mut writes = lock(&self.0);
        let count = writes.entry(object.clone()).or_default();
        *count += 1;
        (UnderWay { writes: self.clone(), object }, *count - 1)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(count) = lock(&self.writes.0).get_mut(&self.object) {
            *count -= 1;
        }
    }
}

/// A request without its conditions.
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
