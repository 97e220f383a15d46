//! The orders of an elector to the driver, and the state of the driver that electors see.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::election::RunOutcome;
use crate::elector::work::StartWork;
use crate::store::check::StoreUnfit;

/// A request to compete for one term.
pub(super) struct Candidacy {
    pub(super) work: StartWork,
    /// The time for which the candidacy lets others go first.
    pub(super) stand_back: Duration,
    /// Gets the outcome. Boxed, because an outcome is large, and most candidacies have none yet.
    pub(super) done: oneshot::Sender<Box<RunOutcome>>,
}

/// An order of an elector.
pub(super) enum Order {
    /// Competes for one term.
    Compete(Box<Candidacy>),
    /// Ends the last candidacy. The caller has cancelled, and waits for the end.
    Cancel,
    /// Ends the last candidacy. The caller has dropped the future of its call.
    CallDropped,
    /// The elector was dropped.
    ElectorDropped,
}

/// The state of a session, as its electors see it.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// Nobody runs the session. Candidacies wait until somebody does.
    Idle,
    Running,
    /// The store has failed the check. Candidacies fail with this error until the session runs.
    Unfit(StoreUnfit),
}
