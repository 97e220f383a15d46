//! The smallest record of a part that the rules can tell apart.

use std::collections::BTreeMap;
use std::time::Duration;

use leaderelection_protocol::record::{Claims, Content, InParts, Record};

use crate::kernel::Id;

/// The version of each part, and `true` if the part counts.
pub(super) type Versions = BTreeMap<usize, (Option<Id>, bool)>;

/// The version of a part, or of the whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Version {
    Part(Id),
    Whole(Versions),
}

/// The id of a write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum WriteId {
    Drawn(Id),
    RollBack(Id),
    /// Of no write.
    Of(Box<Version>),
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Half {
    pub(super) holder: Option<Id>,
    pub(super) lease: Duration,
    pub(super) token: u64,
    pub(super) write_id: Option<WriteId>,
    pub(super) is_done: bool,
}

/// The only job, and its mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TheJob;

impl Half {
    fn of(content: Content<'_, Self>, is_done: bool) -> Self {
        Self {
            holder: content.holder.copied(),
            lease: content.lease_duration,
            token: content.token,
            write_id: content.write_id,
            is_done: is_done || content.mark.is_some(),
        }
    }
}

impl Record for Half {
    type Identity = Id;
    type WriteId = WriteId;
    type Version = Version;
    type Job = TheJob;
    type SessionId = std::convert::Infallible;
    type Decoration = ();

    fn holder(&self) -> Option<&Id> {
        self.holder.as_ref()
    }

    fn lease_duration(&self) -> Duration {
        self.lease
    }

    fn token(&self) -> u64 {
        self.token
    }

    fn write_id(&self) -> Option<&WriteId> {
        self.write_id.as_ref()
    }

    /// Nobody: the name in a request is left to the model with the shipped policy.
    fn preferred(&self) -> Option<&Id> {
        None
    }

    fn is_done(&self, _: &TheJob) -> bool {
        self.is_done
    }

    fn replacing(before: Option<&Self>, content: Content<'_, Self>, (): ()) -> Self {
        Self::of(content, before.is_some_and(|before| before.is_done))
    }
}

impl InParts for Half {
    type Parts = ();
    type Mark = TheJob;

    fn in_each_part(&self, (): &()) -> Self {
        self.clone()
    }

    fn has_same_holder_details(&self, _: &Self) -> bool {
        true
    }

    fn marks(&self) -> Vec<TheJob> {
        self.is_done.then_some(TheJob).into_iter().collect()
    }

    fn whole(parts: BTreeMap<usize, (Option<&Version>, bool)>) -> Version {
        let id = |version: &Version| match version {
            Version::Part(id) => *id,
            Version::Whole(_) => unreachable!("the version of a part"),
        };
        Version::Whole(parts.into_iter().map(|(part, (version, counts))| (part, (version.map(id), counts))).collect())
    }

    fn counted_in(version: &Version) -> Option<BTreeMap<usize, Option<Version>>> {
        let Version::Whole(parts) = version else { return None };
        let counted = parts.iter().filter(|(_, (_, counts))| *counts);
        Some(counted.map(|(part, (version, _))| (*part, version.map(Version::Part))).collect())
    }

    fn id_of_none(_: Option<&WriteId>, version: &Version) -> WriteId {
        WriteId::Of(Box::new(version.clone()))
    }

    fn id_of_rollback(taken: &WriteId) -> WriteId {
        match taken {
            WriteId::Drawn(id) => WriteId::RollBack(*id),
            other => other.clone(),
        }
    }

    fn is_of_rollback(id: &WriteId) -> bool {
        matches!(id, WriteId::RollBack(_))
    }

    fn rolled_back(&self, content: Content<'_, Self>) -> Self {
        Self::of(content, self.is_done)
    }

    fn together(content: Content<'_, Self>, claims: Claims<'_, Self>) -> Self {
        Self::of(content, claims.marks.iter().any(|marks| !marks.is_empty()))
    }
}
