//! The checked settings of a session.

use super::fleet::Fleet;
use crate::config::common::SharedConfig;
use crate::sessions::machine::SessionConfig;

/// The checked settings of a session.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) rules: SessionConfig,
    pub(super) fleet: Fleet,
    pub(super) basics: SharedConfig,
}
