//! The part of operators, who change locks from outside.

pub mod admin;
