//! One process leads many locks for the price of one: the state machine, and the driver that carries out its effects.

pub(crate) mod driver;
pub(crate) mod keys;
#[doc(hidden)]
pub mod machine;

pub use machine::Progress;

pub use driver::{LeadAllError, LockNameError, Session, SessionBuilder, SessionElector, Slot, Slots};
#[cfg(feature = "peers")]
pub use driver::{OwnSession, SessionChannel};
