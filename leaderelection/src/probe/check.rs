//! What is tried, and what came of it.

use std::fmt;

use crate::contract::Breach;
use crate::store::StoreError;

/// Something that a probe tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CheckKind {
    /// An object is created that exists: must be refused.
    CreateTwice,
    /// An object is updated by the version before the last: must be refused.
    StaleUpdate,
    /// An object is updated that does not exist: must be refused.
    UpdateMissing,
    /// Writers create one object at the same time: one of them wins.
    RacingCreators,
    /// Writers update one object from the same version at the same time: one of them wins.
    RacingUpdaters,
    /// An object is deleted by the version before the last: must be refused. No election depends on it.
    StaleDelete,
}

impl CheckKind {
    pub(super) const ALL: [Self; 6] = [
        Self::CreateTwice,
        Self::StaleUpdate,
        Self::UpdateMissing,
        Self::RacingCreators,
        Self::RacingUpdaters,
        Self::StaleDelete,
    ];

    /// Whether leaders are exclusive only on a store that passes. An elector never deletes, so that a
    /// store whose deletions are unconditional can still elect.
    #[must_use]
    pub fn is_required(self) -> bool {
        self != Self::StaleDelete
    }
}

impl fmt::Display for CheckKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::CreateTwice => "create twice",
            Self::StaleUpdate => "stale update",
            Self::UpdateMissing => "update of a missing object",
            Self::RacingCreators => "racing creators",
            Self::RacingUpdaters => "racing updaters",
            Self::StaleDelete => "stale delete",
        })
    }
}

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The store did what its contract says.
    Passed,
    /// It did something else.
    Failed,
    /// It answered with errors, or not in time.
    Inconclusive,
    /// Not tried, because a check before was inconclusive.
    Skipped,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Inconclusive => "inconclusive",
            Self::Skipped => "skipped",
        })
    }
}

/// One check of a probe. Prints what was tried and what the store answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub(super) kind: CheckKind,
    pub(super) outcome: Outcome,
    pub(super) detail: String,
}

impl Check {
    /// What was tried.
    #[must_use]
    pub fn kind(&self) -> CheckKind {
        self.kind
    }

    /// What came of it.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// What the store answered, for people.
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

/// What a check that passed has seen, or why it did not.
pub(super) type Finding<T = String> = Result<T, Stopped>;

/// Why a check did not pass.
#[derive(Debug)]
pub(super) enum Stopped {
    Broken(Breach),
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
