//! Keeps the states of a quorum few, for explorers: see [`Visitor`]. No rule is here.

use super::Quorum;
use crate::lease::Visitor;
use crate::record::InParts;

impl<R: InParts> Quorum<R> {
    /// Forgets our own writes that no part will show.
    pub fn visit(&mut self, visitor: &mut impl Visitor<R>) {
        let copies =
            self.shown.iter().flat_map(|shown| shown.known.values().filter_map(|known| known.kept_copy.as_deref()));
        let known = self.shown.iter().map(|shown| shown.record()).chain(copies);
        let known: Vec<_> = known.map(|record| record.write_id().cloned()).collect();
        self.own.retain(|own| {
            let id = own.record.write_id();
            known.iter().any(|known| known.as_ref() == id) || id.is_some_and(|id| visitor.may_commit(id))
        });
    }
}
