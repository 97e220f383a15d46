//! The audit log of `lease-api`, written by a thread of its own: a pipe that nobody reads, or a disk that hangs, stops no client.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use leaderelection_lease_api::AuditEvent;

/// The number of lines that may wait. Those beyond are dropped and counted.
const MOST: usize = 1000;

/// The lines of an audit log. A clone has the same log.
#[derive(Clone, Debug)]
pub(super) struct AuditLog {
    lines: SyncSender<Entry>,
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Entry {
    Line(String),
    /// Told when all lines before it are written.
    Flush(SyncSender<()>),
}

impl AuditLog {
    /// Begins to write to a file, or to standard error for `-`.
    ///
    /// # Errors
    ///
    /// If the file cannot be written: whoever asks for a log should learn now that there is none.
    pub(super) fn start(path: PathBuf) -> io::Result<Self> {
        append(&path, "")?;
        let ((lines, waiting), dropped) = (sync_channel(MOST), Arc::default());
        let log = Self { lines, dropped: Arc::clone(&dropped) };
        thread::Builder::new().name("audit-log".to_owned()).spawn(move || write(&path, &waiting, &dropped))?;
        Ok(log)
    }

    pub(super) fn add(&self, event: &AuditEvent) {
        if let Ok(line) = serde_json::to_string(event) {
            self.add_line(line);
        }
    }

    fn add_line(&self, line: String) {
        if self.lines.try_send(Entry::Line(line + "\n")).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all lines are written, or until `limit` is over.
    pub(super) fn flush(&self, limit: Duration) {
        let (written, all) = sync_channel(1);
        if self.lines.try_send(Entry::Flush(written)).is_ok() {
            let _ = all.recv_timeout(limit);
        }
    }
}

fn write(path: &Path, waiting: &Receiver<Entry>, dropped: &AtomicU64) {
    while let Ok(entry) = waiting.recv() {
        match entry {
            Entry::Line(line) => {
                if let Err(error) = append(path, &line) {
                    tracing::warn!(path = %path.display(), %error, "cannot write the audit log; lines are lost");
                }
            }
            Entry::Flush(written) => drop(written.send(())),
        }
        let lines = dropped.swap(0, Ordering::Relaxed);
        if lines > 0 {
            let path = path.display();
            tracing::warn!(%path, lines, "cannot write the audit log; lines are lost");
        }
    }
}

/// Appends a line to a file that somebody may rotate at any time, or to standard error.
fn append(path: &Path, line: &str) -> io::Result<()> {
    if path == Path::new("-") {
        return io::stderr().write_all(line.as_bytes());
    }
    OpenOptions::new().create(true).append(true).open(path)?.write_all(line.as_bytes())
}

// A pipe with a name is made in another way elsewhere.
#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Read as _;

    use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};

    use super::*;

    #[test]
    fn a_reader_that_reads_nothing_stops_nobody_and_what_is_lost_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        mknodat(CWD, &path, FileType::Fifo, Mode::from(0o600), 0).unwrap();
        let reader = open(&path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap();
        let log = AuditLog::start(path).unwrap();
        let mut number = 0;
        // While the pipe has room, the thread writes, and logs what was dropped so far.
        while number < 3 * MOST || log.dropped.load(Ordering::Relaxed) == 0 {
            log.add_line(format!("{number} {}", "x".repeat(200)));
            number += 1;
        }
        log.flush(Duration::ZERO);
        let (mut reader, mut first) = (std::fs::File::from(reader), [0; 2]);
        while reader.read_exact(&mut first).is_err() {
            thread::yield_now();
        }
        assert_eq!(&first, b"0 ");
    }
}
