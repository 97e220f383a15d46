//! The record of a lock, as far as the rules read it.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// The largest token that every reader accepts: JSON numbers have 53 bits.
pub const MAX_TOKEN: u64 = (1 << 53) - 1;

/// The lease of a released record, as in client-go. Nobody waits for it, and other libraries want a positive number.
pub const RELEASED_LEASE: Duration = Duration::from_secs(1);

/// The content of a lock's object.
///
/// The rules read the fields below. What else a record has, such as the times for people or the leader's address, is
/// decoration: no rule reads it, and a policy fills it in.
pub trait Record: Clone + Debug + Eq + Hash {
    /// The name of a candidate.
    type Identity: Clone + Debug + Eq + Hash;
    /// The id of a write: random, and new for every write.
    type WriteId: Clone + Debug + Eq + Hash;
    /// The version of the object, which names one content: an ETag, a generation.
    type Version: Clone + Debug + Eq + Hash;
    /// A job that has to succeed only once (rule 18).
    type Job: Clone + Debug + Eq + Hash;
    /// The fields that no rule reads.
    type Decoration;

    /// `holderIdentity`; `None` after a release.
    fn holder(&self) -> Option<&Self::Identity>;

    /// `leaseDuration`: the time for which others leave the lease alone after they saw it change.
    fn lease_duration(&self) -> Duration;

    /// `leaderTransitions`: the fencing token.
    fn token(&self) -> u64;

    /// `writeId`; `None` in the records of other libraries.
    fn write_id(&self) -> Option<&Self::WriteId>;

    /// `preferredHolder`: the candidate that is to lead next (rule 14).
    fn preferred(&self) -> Option<&Self::Identity>;

    /// Returns `true` if the record has the mark of this job (rule 18).
    fn is_done(&self, job: &Self::Job) -> bool;

    /// Makes the record with this content. It keeps the marks of the record that it replaces, and all fields that neither
    /// `content` nor `decoration` names.
    fn replacing(before: Option<&Self>, content: Content<'_, Self>, decoration: Self::Decoration) -> Self;
}

/// The fields that the kernel decides when it makes a record.
#[derive(Debug)]
pub struct Content<'a, R: Record> {
    /// `holderIdentity`.
    pub holder: Option<&'a R::Identity>,
    /// `leaseDuration`.
    pub lease_duration: Duration,
    /// `leaderTransitions`.
    pub token: u64,
    /// `writeId`.
    pub write_id: Option<R::WriteId>,
    /// `preferredHolder`; `None` names nobody, whoever was named before.
    pub preferred: Option<&'a R::Identity>,
    /// The job whose mark is added to those that the record before has; `None` adds none.
    pub mark: Option<&'a R::Job>,
}

/// An object that was read, or that an own write has made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Versioned<R: Record> {
    /// The content.
    pub record: Arc<R>,
    /// Its version.
    pub version: R::Version,
}

/// Returns `true` if `record` is the write `earlier`, although somebody may have named another next leader in it since (rule 14).
///
/// The id tells, because another process may write the same holder and token. These must be equal all the same: somebody may have
/// cleared the record by hand and kept the id.
pub fn is_same_write<R: Record>(record: &R, earlier: &R) -> bool {
    record.write_id().is_some()
        && record.write_id() == earlier.write_id()
        && record.holder() == earlier.holder()
        && record.token() == earlier.token()
        && record.lease_duration() == earlier.lease_duration()
}
