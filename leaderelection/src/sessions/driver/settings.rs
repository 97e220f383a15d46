//! The checked settings of a session.

use super::place::Place;
use crate::config::common::Basics;
use crate::sessions::machine::Rules;

/// The checked settings of a session.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) rules: Rules,
    pub(super) place: Place,
    pub(super) basics: Basics,
}
