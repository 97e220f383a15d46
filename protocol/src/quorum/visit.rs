//! The states of a quorum, for explorers. No rule is here.

use std::sync::Arc;

use super::{Own, Quorum, Shown};
use crate::lease::Visitor;
use crate::record::InParts;

impl<R: InParts> Quorum<R> {
    /// Forgets own writes that no part will show, for explorers.
    pub fn visit(&mut self, visitor: &mut impl Visitor<R>) {
        let asides =
            |shown: &Shown<R>| shown.places.0.values().filter_map(|place| place.aside.clone()).collect::<Vec<_>>();
        let known =
            self.shown.iter().flat_map(|shown| asides(shown).into_iter().chain([Arc::clone(&shown.found.record)]));
        let known: Vec<Arc<R>> = known.collect();
        let is_known = |own: &Own<R>| known.iter().any(|record| record.write_id() == own.record.write_id());
        self.own.retain(|own| is_known(own) || own.record.write_id().is_some_and(|id| visitor.may_land(id)));
    }
}
