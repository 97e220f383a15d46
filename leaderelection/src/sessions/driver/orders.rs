//! The orders of an elector to the driver.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::election::RunOutcome;
use crate::elector::work::StartWork;

/// One candidacy, until its term is over.
pub(super) struct Candidacy {
    pub(super) work: StartWork,
    pub(super) stand_back: Duration,
    /// Boxed, because an outcome is long, and most candidacies have none yet.
    pub(super) done: oneshot::Sender<Box<RunOutcome>>,
}

/// The orders of an elector that the driver has not read.
#[derive(Default)]
pub(super) struct Orders {
    /// `true` while the elector is in the queue of those with orders.
    pub(super) queued: bool,
    pub(super) candidacy: Option<Box<Candidacy>>,
    /// The end of the candidacy that the driver has.
    pub(super) end: Option<End>,
    /// `true` after the elector was dropped.
    pub(super) gone: bool,
}

/// The reason for which an elector ends its candidacy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The caller has cancelled, and waits for the end.
    Cancelled,
    /// The caller has dropped the future.
    Dropped,
}

impl Orders {
    /// Ends the candidacy, and returns it if the driver has not seen it.
    pub(super) fn end(&mut self, end: End) -> Option<Box<Candidacy>> {
        let unseen = self.candidacy.take();
        // A candidacy that the driver never saw has nothing to end there. Its caller is answered by the drop.
        if unseen.is_none() {
            self.end = Some(end);
        }
        unseen
    }
}
