//! The checked settings of a session.

use std::sync::Arc;

use super::place::Place;
use crate::clock::Clock;
use crate::session::Rules;

/// The checked settings of a session.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) rules: Rules,
    pub(super) place: Place,
    pub(super) name: String,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) seed: Option<u64>,
}
