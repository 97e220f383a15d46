//! Counts the reads that a follower did not send, because of the leader's messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::LocalInstant;
use crate::util::sync::Mutex;

/// The number of reads that messages have saved.
#[derive(Debug, Default)]
pub(super) struct SavedReads {
    total: Arc<AtomicU64>,
    state: Mutex<LastRead>,
}

/// The last read of the run, and what has happened since.
#[derive(Debug, Default)]
struct LastRead {
    sent_at: Option<LocalInstant>,
    got_message: bool,
}

impl SavedReads {
    pub(super) fn total(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.total)
    }

    /// Notes a message of the leader that was not ignored.
    pub(super) fn on_message(&self) {
        self.state.lock().got_message = true;
    }

    /// Forgets the last read, because messages save no reads between two runs.
    pub(super) fn on_run_end(&self) {
        *self.state.lock() = LastRead::default();
    }

    /// Notes that a read is sent, and counts the reads that messages have saved since the last one. `usual_pause` is a
    /// follower's mean pause between reads without messages, or `None` if the candidate does not follow.
    pub(super) fn on_read_sent(&self, now: LocalInstant, usual_pause: Option<Duration>) {
        let before = std::mem::replace(&mut *self.state.lock(), LastRead { sent_at: Some(now), got_message: false });
        let (Some(pause), Some(last), true) = (usual_pause, before.sent_at, before.got_message) else { return };
        let usual = now.saturating_since(last).as_nanos() / pause.as_nanos().max(1);
        // The last of the usual reads was not saved: it is the one that is now sent.
        let saved = u64::try_from(usual).unwrap_or(u64::MAX).saturating_sub(1);
        self.total.fetch_add(saved, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_between_two_runs_saves_no_reads() {
        for (has_run_ended, total) in [(false, 1799), (true, 0)] {
            let (saved, pause) = (SavedReads::default(), Some(Duration::from_secs(2)));
            let first = LocalInstant::from_nanos(1);
            saved.on_read_sent(first, pause);
            saved.on_message();
            if has_run_ended {
                saved.on_run_end();
            }
            saved.on_read_sent(first + Duration::from_secs(3600), pause);
            assert_eq!(saved.total().load(Ordering::Relaxed), total);
        }
    }
}
