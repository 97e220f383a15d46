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

#[cfg(test)]
mod tests {
    use leaderelection::clock::LocalInstant;
    use leaderelection_protocol::lease::{Lease, Limits, NoPermit};
    use leaderelection_protocol::record::Versioned;

    use super::*;

    const NOW: LocalInstant = LocalInstant::from_nanos(0);

    fn limits(lease: u64) -> Limits {
        Limits { lease_duration: Duration::from_secs(lease), renew_deadline: Duration::from_secs(lease / 2) }
    }

    /// A candidate that has read this record.
    fn candidate(found: Option<Tiny>) -> Lease<Tiny> {
        let mut lease = Lease::new(Id::of(0), limits(60), false);
        lease.begin_read().expect("no other request");
        let found = found.map(|record| Versioned { record: record.into(), version: Id::of(9) });
        lease.read_answered(NOW, Ok(found), Duration::ZERO);
        lease
    }

    /// Nobody could tell the request from a renewal.
    #[test]
    fn a_record_without_an_id_gets_no_request() {
        let held = |write_id| {
            let (holder, lease) = (Some(Id::of(1)), Duration::from_secs(60));
            Tiny { holder, lease, token: 3, write_id, preferred: None, is_done: false }
        };
        assert!(candidate(Some(held(Some(Id::of(2))))).may_request(NOW).is_ok());
        assert_eq!(candidate(Some(held(None))).may_request(NOW).err(), Some(NoPermit::Nothing));
    }

    /// The first write may have been committed, although the second was sent with a shorter lease.
    #[test]
    fn of_two_unanswered_acquires_the_longer_lease_counts() {
        let mut lease = candidate(None);
        for (seconds, id) in [(60, 1), (6, 2)] {
            lease.set_limits(NOW, limits(seconds));
            let write = lease.may_acquire(NOW).expect("nobody holds it").write(|| Id::of(id), ());
            assert_eq!(write.record().lease, Duration::from_secs(seconds));
            lease.write_answered(NOW, None);
        }
        assert_eq!(lease.may_hold_until(), Some(NOW + Duration::from_secs(60)));
    }
}
