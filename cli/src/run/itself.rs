//! This program, which starts itself as a helper process.

use std::env;
use std::path::PathBuf;

/// The argument with which this program starts the command.
pub(super) const START: &str = "__start";

/// The argument with which this program watches over the command.
pub(super) const WATCHDOG: &str = "__watchdog";

/// The path of this program, even if a newer version has replaced its file.
pub(super) fn path() -> PathBuf {
    if cfg!(target_os = "linux") {
        return PathBuf::from("/proc/self/exe");
    }
    env::current_exe().unwrap_or_else(|_| PathBuf::from("leaderelect"))
}
