//! The state machine, step by step. A target of the fuzzer gives it arbitrary inputs.

mod peer_feed;
mod steps;
