//! Histories of the calls of processes, which a program in another language judges: see `integration-tests/porcupine`.
//!
//! A history is a file with one event in each line, in Jepsen's terms: the call of a process, or the end of one.

mod judge;
mod recorded;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::fence::FencedError;
use serde_json::{Value, json};

pub use judge::{JUDGE, judge, verdict};
pub use recorded::Recorded;

/// The events of one process, in a file that several processes may share.
#[derive(Debug)]
pub struct History {
    file: File,
    process: u32,
    calls: AtomicU64,
}

impl History {
    /// Adds the events of a process to a file. No two processes of a file have one number.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened.
    pub fn of(process: u32, file: &Path) -> io::Result<Arc<Self>> {
        let file = OpenOptions::new().create(true).append(true).open(file)?;
        Ok(Arc::new(Self { file, process, calls: AtomicU64::default() }))
    }

    /// Notes the work of a leader: a write with a fencing token to an object that refuses smaller ones.
    ///
    /// # Errors
    ///
    /// The errors of the work.
    pub async fn work(
        &self,
        object: &str,
        token: u64,
        work: impl Future<Output = Result<(), FencedError>>,
    ) -> Result<(), FencedError> {
        let call = self.begin(json!({ "object": object, "operation": "work", "token": token }));
        let worked = work.await;
        let kind = match &worked {
            Ok(()) => "ok",
            Err(error) if error.stale().is_some() => "fail",
            Err(_) => "info",
        };
        self.end(call, kind, json!({}));
        worked
    }

    /// Notes a call. Without an end, the call may have its effect at any later moment.
    fn begin(&self, question: Value) -> u64 {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        self.write(call, "invoke", question);
        call
    }

    fn end(&self, call: u64, kind: &str, answer: Value) {
        self.write(call, kind, answer);
    }

    /// Writes an event in one piece, so that a kill leaves no part of it and no other process comes between.
    fn write(&self, call: u64, kind: &str, mut event: Value) {
        let at = SystemClock.now().as_nanos();
        for (name, value) in
            [("process", json!(self.process)), ("call", json!(call)), ("at", json!(at)), ("type", json!(kind))]
        {
            event[name] = value;
        }
        (&self.file).write_all(format!("{event}\n").as_bytes()).unwrap();
    }
}
