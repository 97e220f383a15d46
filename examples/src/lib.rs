//! What the example programs share.

pub mod fenced_log;
pub mod lead;
pub mod logs;
pub mod shutdown;
pub mod timing;

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
