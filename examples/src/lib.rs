//! What the example programs share.

pub mod fenced_log;
