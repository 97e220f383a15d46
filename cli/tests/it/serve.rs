//! `leaderelect serve`: the real program, asked over real sockets.

mod access;
mod browser;
mod careless_s3;
mod crowd;
mod ending;
mod process;
mod refusals;
mod sidecar;
mod telling;
