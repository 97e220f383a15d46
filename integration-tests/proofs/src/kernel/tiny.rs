//! The smallest record that the rules can tell apart.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use leaderelection_protocol::record::{Content, Record};

/// A name, the id of a write, or a version. Only equality matters, so the fingerprint of a state has its place in the order of
/// appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(pub(super) u16);

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let digit = |value: u16| b"abcdefghijklmnop"[usize::from(value & 15)];
        state.write(&[b'#', digit(self.0), digit(self.0 >> 4), digit(self.0 >> 8), digit(self.0 >> 12)]);
    }
}

impl Id {
    /// The id with this number.
    pub(crate) fn of(number: usize) -> Self {
        Self(u16::try_from(number).expect("few ids"))
    }

    /// Returns `true` if the number is that of a node, plus a multiple of the number of nodes.
    pub(crate) fn is_of(self, node: usize, nodes: usize) -> bool {
        usize::from(self.0) % nodes == node
    }

    /// The id after this one.
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tiny {
    pub(super) holder: Option<Id>,
    pub(super) lease: Duration,
    pub(super) token: u64,
    /// `None` in the records of another library.
    pub(super) write_id: Option<Id>,
    pub(super) preferred: Option<Id>,
    pub(super) is_done: bool,
}

/// The only job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TheJob;

impl Record for Tiny {
    type Identity = Id;
    type WriteId = Id;
    type Version = Id;
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

    fn write_id(&self) -> Option<&Id> {
        self.write_id.as_ref()
    }

    fn preferred(&self) -> Option<&Id> {
        self.preferred.as_ref()
    }

    fn is_done(&self, _: &TheJob) -> bool {
        self.is_done
    }

    fn replacing(before: Option<&Self>, content: Content<'_, Self>, (): ()) -> Self {
        Self {
            holder: content.holder.copied(),
            lease: content.lease_duration,
            token: content.token,
            write_id: content.write_id,
            preferred: content.preferred.copied(),
            is_done: content.mark.is_some() || before.is_some_and(|before| before.is_done),
        }
    }
}
