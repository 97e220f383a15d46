//! Sessions: one process leads many locks, and renews only its session. A state machine decides, and a driver carries out its effects.

pub(crate) mod driver;
pub(crate) mod keys;
#[doc(hidden)]
pub mod machine;

pub use machine::Progress;

pub use driver::{LeadAllError, LockNameError, Session, SessionBuilder, SessionElector, Slot, Slots};
#[cfg(feature = "peers")]
pub use driver::{OwnSession, SessionChannel};
