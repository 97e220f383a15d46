//! What a leader holds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, LocalInstant};
use crate::election::{EndReason, Term};

/// One term of leadership, as its work sees it. Clones are views of the same term.
///
/// A term that has ended never becomes valid again: a later one has a `Leadership` of its own.
///
/// What was already sent when a term ends is not called back. A resource that must not be written by
/// two leaders has to be given the [fencing token](Self::fencing_token) and to refuse smaller ones.
#[derive(Clone, Debug)]
pub struct Leadership {
    term: Arc<TermState>,
}

#[derive(Debug)]
struct TermState {
    fencing_token: u64,
    clock: Arc<dyn Clock>,
    sent_at: AtomicU64,
    valid_until: AtomicU64,
    lost: CancellationToken,
    given_up: OnceLock<EndReason>,
}

impl Leadership {
    pub(crate) fn new(term: Term, clock: Arc<dyn Clock>) -> Self {
        Self {
            term: Arc::new(TermState {
                fencing_token: term.fencing_token,
                clock,
                sent_at: AtomicU64::new(term.sent_at.as_nanos()),
                valid_until: AtomicU64::new(term.valid_until.as_nanos()),
                lost: CancellationToken::new(),
                given_up: OnceLock::new(),
            }),
        }
    }

    /// The term's token: larger than those of all terms that were won before, and no other term's.
    #[must_use]
    pub fn fencing_token(&self) -> u64 {
        self.term.fencing_token
    }

    /// Whether we lead, right now: compares the deadline with the clock, on every call.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// How long we lead unless the lease is renewed; zero when the term is over.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        if self.term.lost.is_cancelled() {
            return Duration::ZERO;
        }
        let remaining = self.valid_until().saturating_since(self.term.clock.now());
        if remaining.is_zero() {
            // Whoever is told so may act on it, and a renewal that is just being answered must not take it back.
            self.give_up(EndReason::RenewDeadline);
        }
        remaining
    }

    /// When leadership ends unless the lease is renewed, on this process's monotonic clock.
    #[must_use]
    pub fn valid_until(&self) -> LocalInstant {
        LocalInstant::from_nanos(self.term.valid_until.load(Ordering::Acquire))
    }

    /// Completes when the term is over. Cancellation safe.
    pub async fn lost(&self) {
        self.term.lost.cancelled().await;
    }

    /// A token that is cancelled when the term is over. Cancelling it does nothing to the term.
    #[must_use]
    pub fn cancellation_token(&self) -> CancellationToken {
        self.term.lost.child_token()
    }

    /// Ends the term now, as [`LeaderHandle::step_down`](crate::LeaderHandle::step_down) does.
    pub fn step_down(&self) {
        self.give_up(EndReason::SteppedDown);
    }

    /// Makes the term invalid at once. The elector, which waits for it, does the rest.
    pub(crate) fn give_up(&self, reason: EndReason) {
        // The first reason counts.
        let _ = self.term.given_up.set(reason);
        self.term.lost.cancel();
    }

    pub(crate) fn given_up(&self) -> Option<EndReason> {
        self.term.given_up.get().cloned()
    }

    pub(crate) fn renew(&self, term: Term) {
        self.term.sent_at.store(term.sent_at.as_nanos(), Ordering::Release);
        self.term.valid_until.store(term.valid_until.as_nanos(), Ordering::Release);
    }

    /// How old the last renewal is.
    pub(crate) fn renewal_age(&self) -> Duration {
        let sent_at = LocalInstant::from_nanos(self.term.sent_at.load(Ordering::Acquire));
        self.term.clock.now().saturating_since(sent_at)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use async_trait::async_trait;
    use chrono::{DateTime, Utc};

    use super::*;

    #[derive(Debug, Default)]
    struct Hands(AtomicU64);

    #[async_trait]
    impl Clock for Hands {
        fn now(&self) -> LocalInstant {
            LocalInstant::from_nanos(self.0.load(Ordering::SeqCst))
        }

        fn wall_time(&self) -> DateTime<Utc> {
            DateTime::UNIX_EPOCH
        }

        async fn sleep_until(&self, _deadline: LocalInstant) {
            std::future::pending().await
        }
    }

    fn term(sent_at: u64) -> Term {
        let sent_at = LocalInstant::from_nanos(sent_at);
        Term { fencing_token: 7, sent_at, valid_until: sent_at + Duration::from_nanos(10) }
    }

    #[test]
    fn what_was_told_that_it_is_over_is_over() {
        for is_asked in [true, false] {
            let hands = Arc::new(Hands::default());
            let leadership = Leadership::new(term(0), hands.clone());
            let token = leadership.cancellation_token();
            assert!(leadership.is_valid());
            hands.0.store(10, Ordering::SeqCst);
            if is_asked {
                assert!(!leadership.is_valid());
                assert!(token.is_cancelled());
            }
            // By an answer that was taken before, and got here late.
            leadership.renew(term(9));
            assert_eq!(leadership.is_valid(), !is_asked);
            assert_eq!(leadership.given_up(), is_asked.then_some(EndReason::RenewDeadline));
        }
    }
}
