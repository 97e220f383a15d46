//! The checked settings of a session.

use std::sync::Arc;

use super::place::Place;
use crate::clock::Clock;
use crate::history::keeper::Keeper;
use crate::sessions::machine::Rules;
use crate::store::check::{Candidacy, StoreCheck};
use crate::timings::Timings;

/// The checked settings of a session.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) rules: Rules,
    pub(super) place: Place,
    pub(super) name: String,
    pub(super) timings: Timings,
    /// The writer of the locks' histories, if they are kept.
    pub(super) history: Option<Arc<Keeper>>,
    pub(super) store_check: Option<Arc<dyn StoreCheck>>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) seed: Option<u64>,
}

impl Settings {
    /// Describes the candidacy `id` to the check of the store.
    pub(super) fn candidacy(&self, id: String) -> Candidacy<'_> {
        let (store, key) = self.place.object();
        let (request_timeout, pause) = (self.timings.request_timeout(), self.timings.lease_duration());
        Candidacy { store, key, id, request_timeout, pause, clock: &self.clock }
    }
}
