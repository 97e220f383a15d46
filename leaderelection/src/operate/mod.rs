//! Changes that operators make to locks.

pub mod admin;
