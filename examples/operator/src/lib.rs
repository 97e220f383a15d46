//! The parts of the operator: what its replicas elect on, and the controller of the one that leads.
#![cfg(feature = "kubernetes")]

mod controller;
mod copy;
mod election;
mod reach;
mod standby;

pub use controller::Controller;
pub use election::ElectedOn;
pub use reach::CutOff;
