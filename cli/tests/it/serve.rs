//! `leaderelect serve`: the real program, asked over real sockets.

mod access;
mod careless_s3;
mod crowd;
mod ending;
mod peers;
pub(crate) mod process;
mod refusals;
pub(crate) mod sidecar;
mod telling;
