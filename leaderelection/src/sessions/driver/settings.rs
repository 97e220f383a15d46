//! The checked settings of a session.

use super::place::Place;
use crate::config::common::SharedConfig;
use crate::sessions::machine::SessionConfig;

/// The checked settings of a session.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) rules: SessionConfig,
    pub(super) place: Place,
    pub(super) basics: SharedConfig,
}
