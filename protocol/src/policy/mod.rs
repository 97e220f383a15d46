//! Policy: when to send which request. No promise about leadership depends on anything here.
//!
//! A policy decides when a candidate sends its next request, and the kernel decides whether it may. So the policies here contain moments,
//! durations and counts, but no permit, write or term. The crate `leaderelection` connects policies and kernel.

pub mod back_off;
pub mod concurrency_limit;
pub mod failback_delay;
mod pace;
pub mod pacing;
pub mod peer_feed;
#[cfg(feature = "sessions")]
pub mod ranking;
pub mod released;
pub mod rhythm;
pub mod timer_queue;
mod visitor;
pub mod wait;

pub use pace::{JITTER_FACTOR, Jitter, Pace};
pub use visitor::Visitor;
