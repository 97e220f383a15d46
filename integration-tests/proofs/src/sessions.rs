//! Sessions: a model of members that share locks, and a simulation of many members with many locks.

pub mod model;
pub mod simulation;
mod wire;
