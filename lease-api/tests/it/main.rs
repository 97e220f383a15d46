//! The API, request by request, without a socket.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod api;
mod both;
mod callers;
mod doubt;
mod listings;
mod notes;
mod one_lock;
mod pages;
mod patches;
mod people;
mod protobuf;
mod refusals;
mod shares;
mod tokens;
mod watches;
