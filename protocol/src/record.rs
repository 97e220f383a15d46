//! The record of a lock, as far as the rules read it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// The token of the first term of a lock without a record (rule 3). It is not 0, which reads as none in many languages and databases.
/// A record with 0 that another library has made is followed by 1, like any other.
pub const FIRST_TOKEN: u64 = 1;

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
    /// The ID of a session: random, and new for every session (rule S1).
    type SessionId: Clone + Debug + Ord + Hash;
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

impl<'a, R: Record> Content<'a, R> {
    /// The content of a record, which gets no further mark.
    pub fn of(record: &'a R) -> Self {
        Self {
            holder: record.holder(),
            lease_duration: record.lease_duration(),
            token: record.token(),
            write_id: record.write_id().cloned(),
            preferred: record.preferred(),
            mark: None,
        }
    }
}

/// A record as the rules of one lease in several objects, its *parts*, read it and make it: see
/// [`quorum`](crate::quorum).
pub trait InParts: Record {
    /// The names of all parts and the number that a leader needs, which each part shows (M8).
    type Parts: Clone + Debug + Eq + Hash;
    /// The mark of a job in a record.
    type Mark: Clone + Debug + Eq;

    /// The record as it is written into each part.
    #[must_use]
    fn in_each_part(&self, parts: &Self::Parts) -> Self;

    /// Returns `true` if two records of one write say the same of their holder, such as its address. No rule reads that, but
    /// the whole shows one of the two.
    fn describes_as(&self, other: &Self) -> bool;

    /// The marks of all jobs that the record says are done, newest first (rule 18).
    fn marks(&self) -> Vec<Self::Mark>;

    /// The version of the whole: the version of each part, and `true` if the part counts. Other versions, or others that count, are
    /// another version (M1).
    fn whole(parts: BTreeMap<usize, (Option<&Self::Version>, bool)>) -> Self::Version;

    /// The parts that count in a version that [`whole`](Self::whole) has made; `None` for any other version.
    fn counted_in(version: &Self::Version) -> Option<BTreeMap<usize, Option<Self::Version>>>;

    /// The id of a record that is no part's, of which `leading` says who leads. No write has it.
    fn id_of_none(leading: Option<&Self::WriteId>, version: &Self::Version) -> Self::WriteId;

    /// The id of the write that rolls back the takeover with the id `taken`. No other write has it.
    fn id_of_rollback(taken: &Self::WriteId) -> Self::WriteId;

    /// Returns `true` for an id that [`id_of_rollback`](Self::id_of_rollback) has made.
    fn is_of_rollback(id: &Self::WriteId) -> bool;

    /// Makes the record that rolls back a takeover: `self` with this content, and without what it says of its holder.
    #[must_use]
    fn rolled_back(&self, content: Content<'_, Self>) -> Self;

    /// Makes the record that the parts show together, with this content and all of these marks.
    fn together(content: Content<'_, Self>, claims: Claims<'_, Self>) -> Self;
}

/// The source of a record that parts show together, beside its [`Content`].
#[derive(Debug)]
pub struct Claims<'a, R: InParts> {
    /// The record of which all else comes; `None` if nothing is left but own writes.
    pub base: Option<&'a R>,
    /// `true` if all parts that count show one write, which `base` shows, too.
    pub is_one_write: bool,
    /// The record that was shown before, if it goes on.
    pub before: Option<&'a R>,
    /// The records of all parts, the newest of those that count first.
    pub shown: Vec<&'a R>,
    /// The marks that stand, a list for each record, in the same order.
    pub marks: Vec<Vec<R::Mark>>,
    /// The number of parts that have answered without showing a record.
    pub missing: usize,
    /// The number of parts that a leader needs.
    pub needed: usize,
}

impl<R: InParts> Claims<'_, R> {
    /// M12: see [`stands`].
    pub fn stand(&self, has: impl Fn(&R) -> bool) -> bool {
        stands(self.missing + self.shown.iter().filter(|record| !has(record)).count(), self.needed)
    }
}

/// M12: returns `true` if a claim stands that so many parts of a poll are without: unless q are. Whatever is committed in q parts
/// has one in common with any other q. So a claim that does not stand is never committed, and no part alone blocks all others.
#[must_use]
pub fn stands(without: usize, needed: usize) -> bool {
    without < needed
}

/// An object that was read, or that one of our own writes has made.
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
