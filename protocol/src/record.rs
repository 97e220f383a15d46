//! The fields of a lock's record that the rules read and write.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// The token of the first term of a lock without a record (rule 3). It is not 0, because many languages and databases take 0 for "none".
/// A record of another library may have token 0, and is followed by 1.
pub const FIRST_TOKEN: u64 = 1;

/// The largest token that every reader of JSON keeps exactly: many have only 53 bits for an integer.
pub const MAX_TOKEN: u64 = (1 << 53) - 1;

/// The lease duration in a released record, as in client-go. Nobody waits for it, but other libraries require a positive number.
pub const RELEASED_LEASE: Duration = Duration::from_secs(1);

/// The content of a lock's object.
///
/// The rules read the fields below. All others, such as the times for people or the leader's address, are *decoration*: no
/// rule reads them, and a policy fills them in.
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

    /// `leaseDuration`: for how long others wait after they last saw the record change.
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
    /// `preferredHolder`; `None` removes the name of the record before.
    pub preferred: Option<&'a R::Identity>,
    /// The job whose mark is added to the marks of the record before; `None` adds none.
    pub mark: Option<&'a R::Job>,
}

impl<'a, R: Record> Content<'a, R> {
    /// The content of a record, with no further mark.
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

/// The record of a lease in several objects, its *parts*: see [`quorum`](crate::quorum).
pub trait InParts: Record {
    /// The names of all parts and the number that a leader needs, which are written into each part (M8).
    type Parts: Clone + Debug + Eq + Hash;
    /// The mark of a job in a record.
    type Mark: Clone + Debug + Eq;

    /// The record as it is written into each part.
    #[must_use]
    fn in_each_part(&self, parts: &Self::Parts) -> Self;

    /// Returns `true` if two records of one write say the same about their holder, such as its address. No rule reads
    /// these details, but the record of the whole has those of only one part.
    fn has_same_holder_details(&self, other: &Self) -> bool;

    /// The marks of all jobs that are done according to the record, newest first (rule 18).
    fn marks(&self) -> Vec<Self::Mark>;

    /// Combines the version of each part, and `true` if the part counts, into the version of the whole. If any version
    /// or flag differs, the result differs, too (M1).
    fn whole(parts: BTreeMap<usize, (Option<&Self::Version>, bool)>) -> Self::Version;

    /// The parts that count in a version made by [`whole`](Self::whole), with their versions; `None` for any other version.
    fn counted_in(version: &Self::Version) -> Option<BTreeMap<usize, Option<Self::Version>>>;

    /// The id for a record of the whole that is in no part. Differs from the id of every write, and for each `version`.
    /// `leading` is the id of the copy that names the holder.
    fn id_of_none(leading: Option<&Self::WriteId>, version: &Self::Version) -> Self::WriteId;

    /// The id of the write that rolls back the takeover with the id `taken`. It differs from the id of every other write.
    fn id_of_rollback(taken: &Self::WriteId) -> Self::WriteId;

    /// Returns `true` for an id made by [`id_of_rollback`](Self::id_of_rollback).
    fn is_of_rollback(id: &Self::WriteId) -> bool;

    /// Makes the record that rolls back the takeover `self`: with this content, and without what `self` says about its holder.
    #[must_use]
    fn rolled_back(&self, content: Content<'_, Self>) -> Self;

    /// Makes the record of the whole, with this content and all of the marks in `claims`.
    fn together(content: Content<'_, Self>, claims: Claims<'_, Self>) -> Self;
}

/// The sources of the record of the whole, in addition to its [`Content`].
#[derive(Debug)]
pub struct Claims<'a, R: InParts> {
    /// The record from which all other fields are copied; `None` if no part has a copy of another candidate.
    pub base: Option<&'a R>,
    /// `true` if all parts that count show one write, and `base` shows it, too.
    pub is_one_write: bool,
    /// The record of the whole that was shown before, if the same write is shown again.
    pub before: Option<&'a R>,
    /// The copies of the parts: first those that count, then the others, each from the highest token to the lowest.
    pub shown: Vec<&'a R>,
    /// The lists of marks that stand: that of `before`, if there is one, and then one for each of `shown`.
    pub marks: Vec<Vec<R::Mark>>,
    /// The number of parts that have answered, but have no object.
    pub missing: usize,
    /// The number of parts that a leader needs.
    pub needed: usize,
}

impl<R: InParts> Claims<'_, R> {
    /// M12: returns `true` if a claim [stands]. `has` says whether a record has the claim.
    pub fn stand(&self, has: impl Fn(&R) -> bool) -> bool {
        stands(self.missing + self.shown.iter().filter(|record| !has(record)).count(), self.needed)
    }
}

/// M12: returns `true` if a claim stands: if fewer than `needed` of the parts that have answered are `without` it. A
/// claim that was committed in q parts always stands, because any q parts include one of them. A claim in fewer parts
/// may not stand, so a hostile writer of one part cannot block the others.
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

/// Returns `true` if `record` is the write `earlier`, even if somebody has named another next leader in it since (rule 14).
///
/// The id is compared because another process may write the same holder and token. The other fields are compared because somebody
/// may have cleared the record by hand and kept the id.
pub fn is_same_write<R: Record>(record: &R, earlier: &R) -> bool {
    record.write_id().is_some()
        && record.write_id() == earlier.write_id()
        && record.holder() == earlier.holder()
        && record.token() == earlier.token()
        && record.lease_duration() == earlier.lease_duration()
}
