//! One candidate: the election in an application, and the work of a leader.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::fence::FencedError;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership, ObjectStoreBasedLock, Timings,
    shutdown_signal,
};

use crate::fenced_log::{Entry, FencedLog};
use crate::report::Report;
use crate::shutdown;

/// The log that only the leader writes, as a candidate sees it.
pub trait Log: Clone + Send + Sync + 'static {
    /// Appends one entry, unless a later leader has written.
    fn append(&self, entry: &Entry) -> impl Future<Output = Result<(), FencedError>> + Send;
}

impl Log for FencedLog {
    async fn append(&self, entry: &Entry) -> Result<(), FencedError> {
        Self::append(self, entry).await
    }
}

/// A process that competes for the lock, and appends to the log while it leads.
#[derive(Clone, Debug)]
pub struct Candidate<L = FencedLog> {
    /// The lock, with the candidate's identity.
    pub lock: Arc<dyn ObjectStoreBasedLock>,
    /// The log that only the leader writes.
    pub log: L,
    /// The timings of the election.
    pub timings: Timings,
    /// The pause between a leader's entries.
    pub rest: Duration,
}

impl<L: Log> Candidate<L> {
    /// Competes until SIGTERM, or until the parent process has ended. While the candidate leads, `address` is in the record.
    /// `beside` gets the elector before the campaign begins, and its value is returned after the end.
    ///
    /// # Errors
    ///
    /// If the elector cannot be built, if `beside` fails, or if the store is unfit.
    pub async fn compete<T>(
        self,
        address: Option<String>,
        beside: impl FnOnce(&DefaultLeaderElector) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let (lock, timings) = (self.lock.clone(), self.timings);
        let callbacks = LeaderCallbacks::new()
            .on_start_leading(move |leadership| self.clone().lead(leadership))
            .on_new_leader(|leader| tracing::info!(leader, "new leader"));
        let config = LeaderElectionConfig::builder(lock, callbacks).timings(timings);
        let config = match address {
            Some(address) => config.advertise(address),
            None => config,
        };
        let elector = DefaultLeaderElector::new(config.build()?);
        let beside = beside(&elector)?;
        // The parent reads the reports, and without it nobody needs the work.
        shutdown::exit_with_parent();
        // Returns when the work has ended and the lease is released.
        elector.campaign(shutdown_signal()).await?;
        Ok(beside)
    }

    /// Does the work that only the leader may do, until the term is over.
    async fn lead(self, leadership: Leadership) {
        let _end = EndOfTerm { token: leadership.fencing_token().into() };
        // Both run concurrently: a leader whose log does not answer is still a leader.
        tokio::join!(self.claim(&leadership), self.work(&leadership));
    }

    /// Reports leadership repeatedly while it lasts.
    async fn claim(&self, leadership: &Leadership) {
        loop {
            // The clock is read before the check. A process that is frozen between the two then does not report
            // leadership for the moment at which it thaws.
            let at = SystemClock.now();
            if !leadership.is_valid() {
                return;
            }
            Report::Inside { token: leadership.fencing_token().into(), at, until: leadership.valid_until() }.send();
            leadership.run_until_lost(tokio::time::sleep(self.rest)).await;
        }
    }

    async fn work(&self, leadership: &Leadership) {
        let token = u64::from(leadership.fencing_token());
        let mut number = 0;
        // Checked again before every piece of work: a frozen process goes on long after its last check.
        while leadership.is_valid() {
            let entry = Entry::numbered(token, self.lock.identity(), number);
            match leadership.run_until_lost(self.log.append(&entry)).await {
                Some(Ok(())) => Report::Appended { token, number }.send(),
                // The entry may or may not be in the log, so the next entry gets another number.
                Some(Err(error)) => {
                    Report::NotAppended { token, error: format!("{:#}", anyhow::Error::new(error)) }.send();
                }
                None => return,
            }
            number += 1;
            leadership.run_until_lost(tokio::time::sleep(self.rest)).await;
        }
    }
}

/// Reports the end of the work when it is dropped: the elector drops work that does not end in time.
struct EndOfTerm {
    token: u64,
}

impl Drop for EndOfTerm {
    fn drop(&mut self) {
        Report::Ended { token: self.token, at: SystemClock.now() }.send();
    }
}
