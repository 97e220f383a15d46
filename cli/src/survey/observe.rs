//! The age of a lease, which needs more than one read of the lock, or of the session that holds it.

use std::time::Duration;

use leaderelection::admin::Followed;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::handle::{self, Observation, observe};

use super::Row;
use crate::args::timing::request_limit;
use crate::exit::Failure;
use crate::lock::OperatorLock;
use crate::lock::status::{Age, LockStatus};
use crate::lock::view::View;

/// A reader that reads a lock repeatedly.
#[derive(Debug)]
pub(crate) struct Observer<'a> {
    url: &'a OperatorLock,
    inner: handle::Observer<Followed>,
    began: LocalInstant,
}

impl<'a> Observer<'a> {
    pub(crate) async fn new(
        url: &'a OperatorLock,
        request_timeout: Duration,
        period: Duration,
    ) -> Result<Self, Failure> {
        let target = url.target(Some(request_limit(request_timeout))).await?;
        Ok(Self { url, inner: observe(target, period), began: SystemClock.now() })
    }

    /// Reads again when the period is over, or when the lease expires. The first read is at once.
    pub(crate) async fn next(&mut self) -> Result<Row, Failure> {
        let is_first = self.inner.last().is_none();
        let seen = self.inner.next().await;
        let lease = seen.as_ref().ok().map(|seen| seen.lease());
        let (age, store_age) = (lease.and_then(|lease| self.age(lease)), lease.and_then(Observation::store_age));
        let view = View::of_target(self.url, seen.map(|seen| seen.target))?.named(self.url);
        if is_first && view.status == LockStatus::Absent {
            // Not before the first answer: a disk that hangs would hang this, too, and a read has a limit.
            self.url.must_have_directory()?;
        }
        Ok(Row::new(String::new(), view, age, store_age))
    }

    fn age(&self, seen: &Observation) -> Option<Age> {
        let (now, lease) = (seen.answered_at, seen.expires_at()?.saturating_since(seen.first_seen_at));
        let watched_for = Some(now.saturating_since(self.began));
        Some(Age::new(watched_for, now.saturating_since(seen.first_seen_at), lease, seen.was_seen_to_change))
    }
}
