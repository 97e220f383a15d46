//! The promises that a step may break.

use crate::kit::promises;

promises! {
    /// A write is acknowledged that does not follow the version that it names.
    FalseSuccess = "no false success",
    /// A write is said to have no effect, and has one or may still have one.
    FalseConflict = "no false conflict",
    /// A call shows what is not the newest object of any moment of the call.
    StaleRead = "no stale read",
    /// The highest number is removed.
    HighestRemoved = "the highest stays",
}
