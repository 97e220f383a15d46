//! What the example programs share.

pub mod fenced_log;

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
