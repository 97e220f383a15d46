//! The checks of a probe, and their outcomes.

use std::fmt;

use leaderelection::StoreError;

use crate::contract::Breach;

/// The kind of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CheckKind {
    /// Creates one key twice in a store that can only create. The store must refuse.
    CreateAgain,
    /// Lets creators list a store that can only create. Every listing must show what was created before it.
    ListedAtOnce,
    /// Creates an object that exists. The store must refuse.
    CreateTwice,
    /// Updates an object by the version before the last. The store must refuse.
    StaleUpdate,
    /// Updates an object that does not exist. The store must refuse.
    UpdateMissing,
    /// Lets writers create one object at the same time. Exactly one must win.
    RacingCreators,
    /// Lets writers update one object from the same version at the same time. Exactly one must win.
    RacingUpdaters,
    /// Deletes an object by the version before the last. The store must refuse. No election depends on this
    /// check.
    StaleDelete,
}

impl CheckKind {
    /// The checks of a store that can only create, before all others.
    pub(super) const OF_CREATIONS: [Self; 2] = [Self::CreateAgain, Self::ListedAtOnce];

    pub(crate) const ALL: [Self; 6] = [
        Self::CreateTwice,
        Self::StaleUpdate,
        Self::UpdateMissing,
        Self::RacingCreators,
        Self::RacingUpdaters,
        Self::StaleDelete,
    ];

    /// Returns `true` if exclusive leadership depends on this check. An elector never deletes, so a store with
    /// unconditional deletions can still elect.
    #[must_use]
    pub fn is_required(self) -> bool {
        self != Self::StaleDelete
    }
}

impl fmt::Display for CheckKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::CreateAgain => "create one key twice",
            Self::ListedAtOnce => "creators that list",
            Self::CreateTwice => "create twice",
            Self::StaleUpdate => "stale update",
            Self::UpdateMissing => "update of a missing object",
            Self::RacingCreators => "racing creators",
            Self::RacingUpdaters => "racing updaters",
            Self::StaleDelete => "stale delete",
        })
    }
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The store kept its contract.
    Passed,
    /// The store broke its contract.
    Failed,
    /// The store refused a call that it has to accept.
    Refused,
    /// The store answered with errors, or not in time.
    Inconclusive,
    /// The check was not run, because an earlier check could not be made.
    Skipped,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Refused => "REFUSED",
            Self::Inconclusive => "inconclusive",
            Self::Skipped => "skipped",
        })
    }
}

/// One check of a probe. Its text shows the check and the store's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub(super) kind: CheckKind,
    pub(super) outcome: Outcome,
    pub(super) detail: String,
}

impl Check {
    /// The kind of the check.
    #[must_use]
    pub fn kind(&self) -> CheckKind {
        self.kind
    }

    /// The outcome.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// The answer of the store, for people.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.detail)
    }
}

/// The observation of a check that passed, or the reason why it did not pass.
pub(crate) type Finding<T = String> = Result<T, Stopped>;

/// The reason why a check did not pass.
#[derive(Debug)]
pub(crate) enum Stopped {
    Broken(Breach),
    /// The store refuses a call that it has to accept: what it refuses, and in which words.
    Refused(String),
    Unclear(StoreError),
}

impl From<Breach> for Stopped {
    fn from(breach: Breach) -> Self {
        Self::Broken(breach)
    }
}

impl From<StoreError> for Stopped {
    fn from(error: StoreError) -> Self {
        Self::Unclear(error)
    }
}
