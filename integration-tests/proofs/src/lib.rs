//! The protocol without servers: a model of it to explore, a simulation of its use, and its cost in requests.
#![cfg(feature = "check")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "what finds a mistake in itself fails by panicking")]

pub mod costs;
mod counted;
pub mod gaps;
pub mod kernel;
pub mod kit;
pub mod majority;
pub mod model;
pub mod phase;
pub mod quorum_kernel;
pub mod regions;
pub mod sequenced;
pub mod session_kernel;
pub mod sessions;
pub mod simulation;
pub mod switchboard;

/// The models with their questions.
pub fn models() -> Vec<kit::Asked> {
    vec![
        kit::Asked::new("kernel", kernel::questions(), kernel::larger()),
        kit::Asked::new("session-kernel", session_kernel::questions(), session_kernel::larger()),
        kit::Asked::new("quorum-kernel", quorum_kernel::questions(), quorum_kernel::larger()),
        kit::Asked::new("election", model::questions(), model::larger()),
        kit::Asked::new("sessions", sessions::model::questions(), sessions::model::larger()),
        kit::Asked::new("sequenced", sequenced::questions(), sequenced::larger()),
        kit::Asked::new("majority", majority::questions(), majority::larger()),
    ]
}

/// A third of the time of an exploration goes to the allocator of the C library.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
