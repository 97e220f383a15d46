//! The driver of sessions: one process leads many locks, and renews only its session.

mod attempt;
mod candidate;
mod config;
mod effects;
mod event_loop;
mod fleet;
mod lead_all;
#[cfg_attr(not(feature = "peers"), allow(dead_code, unreachable_pub, reason = "`peers` has the other end"))]
mod line;
mod lock_run;
mod log;
mod orders;
mod request;
mod run;
mod session;
#[cfg(feature = "peers")]
mod session_channel;
mod settings;
mod shared;
mod slots;
mod view;

pub use candidate::SessionElector;
pub use config::SessionBuilder;
pub use lead_all::LeadAllError;
#[cfg(feature = "peers")]
pub use line::OwnSession;
pub use session::{LockNameError, Session};
#[cfg(feature = "peers")]
pub use session_channel::SessionChannel;
pub use slots::{Slot, Slots};
