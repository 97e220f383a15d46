//! The reads that a follower did not send, because of the leader's messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::LocalInstant;
use crate::util::sync::Mutex;

/// The number of reads that messages have saved.
#[derive(Debug, Default)]
pub(super) struct SavedReads {
    total: Arc<AtomicU64>,
    since: Mutex<Since>,
}

/// The time since the last read.
#[derive(Debug, Default)]
struct Since {
    last: Option<LocalInstant>,
    got_message: bool,
}

impl SavedReads {
    pub(super) fn total(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.total)
    }

    /// A message of the leader has counted.
    pub(super) fn on_message(&self) {
        self.since.lock().got_message = true;
    }

    /// The run is over. The time until the next one begins is no pause between reads.
    pub(super) fn quiet(&self) {
        *self.since.lock() = Since::default();
    }

    /// A read is sent. Without messages, a follower sends one per `usual_pause`; `None` if this is no follower.
    pub(super) fn reading(&self, now: LocalInstant, usual_pause: Option<Duration>) {
        let before = std::mem::replace(&mut *self.since.lock(), Since { last: Some(now), got_message: false });
        let (Some(pause), Some(last), true) = (usual_pause, before.last, before.got_message) else { return };
        let usual = now.saturating_since(last).as_nanos() / pause.as_nanos().max(1);
        // Without peers, the last of these reads would have been this one.
        let saved = u64::try_from(usual).unwrap_or(u64::MAX).saturating_sub(1);
        self.total.fetch_add(saved, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_between_two_runs_saves_no_reads() {
        for (is_quiet, total) in [(false, 1799), (true, 0)] {
            let (saved, pause) = (SavedReads::default(), Some(Duration::from_secs(2)));
            let first = LocalInstant::from_nanos(1);
            saved.reading(first, pause);
            saved.on_message();
            if is_quiet {
                saved.quiet();
            }
            saved.reading(first + Duration::from_secs(3600), pause);
            assert_eq!(saved.total().load(Ordering::Relaxed), total);
        }
    }
}
