//! One process leads many locks for the price of one: the state machine, and the driver that carries out its effects.

pub(crate) mod driver;
pub(crate) mod keys;
#[cfg(feature = "unstable-election")]
pub mod machine;
#[cfg(not(feature = "unstable-election"))]
#[allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "explorers of the protocol use more of it than the driver"
)]
pub(crate) mod machine;

pub use machine::Progress;

pub use driver::{LeadAllError, LockNameError, Session, SessionBuilder, SessionElector, Slot, Slots};
#[cfg(feature = "peers")]
pub use driver::{OwnSession, SessionLine};
