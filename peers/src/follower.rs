//! A follower: one stream to the address in the record, for as long as the store shows the same term.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::LeaderElectionRecord;
use leaderelection::lock::DEFAULT_MAX_LEASE_DURATION;
use leaderelection::peers::{ObservedTerm, PeerChannel, PeerMessage};
use leaderelection_protocol::policy::Jitter;
use leaderelection_protocol::policy::back_off::BackOff;
use rand::Rng as _;
use rand::rand_core::UnwrapErr;
use rand::rngs::SysRng;
use tokio::time::{Instant, sleep, timeout_at};

use crate::caller::Caller;
use crate::refusal::Refusal;
use crate::report::{PeerReport, SharedStatus};
use crate::stream::{Said, Stream};

/// The longest pause before another attempt.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The time after which a stream was worth its connection: a peer that ends each one sooner is called less and less often.
const LASTING: Duration = Duration::from_secs(10);

/// Receives the messages of the leaders of one lock.
#[derive(Debug)]
pub(crate) struct Follower {
    line: PeerChannel,
    lock: String,
    caller: Arc<Caller>,
    report: PeerReport,
    /// The pauses since the last stream that lasted for a while.
    pauses: BackOff,
}

impl Follower {
    pub(crate) fn new(line: PeerChannel, lock: impl Into<String>, caller: Arc<Caller>, status: SharedStatus) -> Self {
        let report = PeerReport::new(line.name(), status, line.saved_reads());
        Self { line, lock: lock.into(), caller, report, pauses: BackOff::default() }
    }

    /// Follows until the elector is gone.
    pub(crate) async fn follow(mut self) {
        let mut followed = self.line.followed();
        loop {
            let term = followed.borrow_and_update().clone();
            let next = match term.as_ref().and_then(|term| Some((term, term.address.as_deref()?))) {
                None => followed.changed().await,
                Some((term, address)) => tokio::select! {
                    next = followed.changed() => next,
                    never = self.listen(term, address) => match never {},
                },
            };
            if next.is_err() {
                return;
            }
            self.report.changed();
            self.pauses = BackOff::default();
        }
    }

    /// Listens to the leader of a term, as often as it takes, and without end.
    pub(crate) async fn listen(&mut self, term: &ObservedTerm, address: &str) -> std::convert::Infallible {
        loop {
            let Err(refusal) = self.receive(term, address).await else {
                // The leader has said that its term is over. The store decides what comes next.
                self.report.ended(address);
                return std::future::pending().await;
            };
            self.line.deliver(PeerMessage::Nothing);
            self.report.refused(address, &refusal);
            // Followers that lost the same leader do not come back at the same moment.
            sleep(self.pauses.next(LONGEST_PAUSE, Jitter::new(UnwrapErr(SysRng).next_u32()))).await;
        }
    }

    /// Passes on one stream, until the leader says that its term is over.
    async fn receive(&mut self, term: &ObservedTerm, address: &str) -> Result<(), Refusal> {
        let nonce = nonce();
        let caller = Arc::clone(&self.caller);
        let mut response = caller.open(address, &self.lock, &nonce).await?;
        let began_at = Instant::now();
        let mut silence = self.line.timings().retry_period().saturating_mul(2);
        let mut stream = Stream::new(&self.lock, &nonce, caller.key.as_ref());
        // Only what counts as an event is a sign of life.
        let mut patience = Instant::now() + silence;
        loop {
            let chunk = timeout_at(patience, response.chunk()).await.map_err(|_| Refusal::Silent(silence))?;
            let chunk = chunk.map_err(|error| Refusal::of_stream(&error))?.ok_or(Refusal::Closed)?;
            let mut bytes = &chunk[..];
            while let Some(said) = stream.next(&mut bytes, &term.holder, term.fencing_token.into())? {
                let (holder, fencing_token) = (term.holder.clone(), term.fencing_token);
                let Said::Committed { number, write_id, record, releases } = said else {
                    self.line.deliver(PeerMessage::Ended { holder, fencing_token });
                    return Ok(());
                };
                self.line.deliver(PeerMessage::Committed { holder, fencing_token, write_id, number });
                if let Some((count, locks)) = releases {
                    self.line.deliver(PeerMessage::Released { count, locks });
                }
                self.report.message(address, self.line.saved_reads());
                silence = silent_after(&record, self.line.timings().retry_period());
                patience = Instant::now() + silence;
                if began_at.elapsed() >= LASTING {
                    self.pauses = BackOff::default();
                }
            }
        }
    }
}

/// The time after which a leader that says nothing does not tell of its renewals any more: two of its retry periods, and no
/// longer than its lease lasts, or than any should, because no clock counts the longest time that a peer can name.
fn silent_after(record: &LeaderElectionRecord, own: Duration) -> Duration {
    let retry_period = record.leader_retry_period().unwrap_or(own);
    retry_period.saturating_mul(2).min(record.lease_duration).min(DEFAULT_MAX_LEASE_DURATION)
}

/// A number that no answer was ever made for.
fn nonce() -> String {
    let mut bytes = [0; 16];
    UnwrapErr(SysRng).fill_bytes(&mut bytes);
    format!("{:032x}", u128::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_cannot_name_a_silence_that_no_clock_counts() {
        let record = LeaderElectionRecord::new("a", Duration::MAX);
        assert!(Instant::now().checked_add(silent_after(&record, Duration::MAX)).is_some());
        assert_eq!(silent_after(&record, Duration::from_secs(2)), Duration::from_secs(4));
    }

    #[test]
    fn no_two_questions_are_the_same() {
        assert_ne!(nonce(), nonce());
        assert_eq!(nonce().len(), 32);
    }
}
