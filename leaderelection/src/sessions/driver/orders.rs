//! The orders of an elector to the driver.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::election::RunOutcome;
use crate::elector::work::StartWork;
use crate::store::check::StoreUnfit;

/// One candidacy, until its term is over.
pub(super) struct Candidacy {
    pub(super) work: StartWork,
    pub(super) stand_back: Duration,
    /// Boxed, because an outcome is long, and most candidacies have none yet.
    pub(super) done: oneshot::Sender<Box<RunOutcome>>,
}

/// An order of an elector.
pub(super) enum Order {
    /// Competes for one term.
    Compete(Box<Candidacy>),
    /// Ends the last candidacy. The caller has cancelled, and waits for the end.
    Cancel,
    /// Ends the last candidacy. The caller has dropped the future.
    Drop,
    /// The elector was dropped.
    Leave,
}

/// The state of a session, as its electors see it.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// Nobody runs it. A candidacy waits.
    Rests,
    Runs,
    /// Its store has failed the check, so no candidacy begins before it runs.
    Unfit(StoreUnfit),
}
