//! Tests of the whole.

mod simulation;
