//! Shows the state of a lease to an explorer, such as a model checker. No rule is here.

use super::{InFlight, Lease, Stage, Watch, Window};
use crate::LocalInstant;
use crate::record::Record;

/// Sees every moment in a lease, and may replace it.
///
/// The rules compare moments only with *now* and with each other. So an explorer can keep *now* fixed, move all moments into the past as
/// time passes, and round those that are too old to matter. This leaves finitely many states.
pub trait Visitor<R: Record> {
    /// Sees the end of another's lease. A policy may wait longer.
    fn expiry(&mut self, at: &mut LocalInstant) {
        self.timer(at);
    }

    /// Sees a moment before which something is not done. Once it has passed, its age makes no difference.
    fn timer(&mut self, at: &mut LocalInstant);

    /// Sees a moment at which something happened.
    fn moment(&mut self, at: &mut LocalInstant);

    /// Returns `true` if an object may still show the write with this id. Otherwise, the write is forgotten.
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
    /// Moves all three moments alike: the time in which work has to stop depends on their distances.
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
        // A hint stays even if no object can show its write any more. So an explorer notices a rule that applies the hint to another write.
        if let Some(hint) = &mut self.hint {
            visitor.moment(&mut hint.1);
        }
    }
}
