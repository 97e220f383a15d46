//! `leaderelect serve`: the real program, asked over real sockets.

mod access;
mod also;
mod careless_s3;
mod crowd;
mod ending;
mod hosts;
mod peers;
pub(crate) mod process;
mod refusals;
pub(crate) mod sidecar;
mod telling;
mod term;
