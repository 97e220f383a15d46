//! The states of a lease, for explorers. No rule is here.

use super::{InFlight, Lease, Stage, Watch, Window};
use crate::LocalInstant;
use crate::record::Record;

/// A view of every moment in a lease, for explorers. The visitor may replace each.
///
/// The rules compare moments with *now* and with each other only. So an explorer can move all of them into the past, and finds
/// itself in one of finitely many states.
pub trait Visitor<R: Record> {
    /// Sees the end of another's lease, after which a policy may wait further.
    fn expiry(&mut self, at: &mut LocalInstant) {
        self.timer(at);
    }

    /// Sees a moment before which something is not done. How long ago it has passed makes no difference.
    fn timer(&mut self, at: &mut LocalInstant);

    /// Sees a moment at which something happened.
    fn moment(&mut self, at: &mut LocalInstant);

    /// Tells whether an object may still show the write with this id. If not, the write can be forgotten.
    fn may_commit(&mut self, id: &R::WriteId) -> bool;
}

impl<R: Record> Lease<R> {
    /// Shows every moment to `visitor`, and forgets writes that no object will show.
    pub fn visit(&mut self, visitor: &mut impl Visitor<R>) {
        self.watch.visit(visitor);
        if let Stage::Stopping { drop_by: at, .. } | Stage::Dropped { abandon_at: at } = &mut self.stage {
            visitor.timer(at);
        }
        self.unanswered.retain(|sent| sent.record.write_id().is_some_and(|id| visitor.may_commit(id)));
        if let Some(held) = &mut self.held {
            held.window.visit(visitor);
        }
        if let Some(InFlight::Write(sent)) = &mut self.in_flight {
            sent.window.visit(visitor);
        }
        self.unanswered.iter_mut().for_each(|sent| sent.window.visit(visitor));
    }
}

impl Window {
    /// The moments keep their distances, because one of these is the time in which work has to stop.
    fn visit<R: Record>(&mut self, visitor: &mut impl Visitor<R>) {
        let Self { sent_at, valid_until, lease_until } = self;
        let ages = [valid_until.saturating_since(*sent_at), lease_until.saturating_since(*sent_at)];
        visitor.moment(sent_at);
        (*valid_until, *lease_until) = (*sent_at + ages[0], *sent_at + ages[1]);
    }
}

impl<R: Record> Watch<R> {
    pub(crate) fn visit(&mut self, visitor: &mut impl Visitor<R>) {
        if let Some(observed) = &mut self.observed {
            visitor.expiry(&mut observed.expires_at);
        }
        // A hint is kept although no object may show its write any more, to find a rule that lets it count for another write.
        if let Some(hint) = &mut self.hint {
            visitor.moment(&mut hint.1);
        }
    }
}
