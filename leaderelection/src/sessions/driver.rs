//! Sessions: one process leads many locks for the price of one renewal per retry period.

mod attempt;
mod candidate;
mod config;
mod effects;
mod event_loop;
mod lead_all;
#[cfg_attr(not(feature = "peers"), allow(dead_code, unreachable_pub, reason = "nobody opens the line"))]
mod line;
mod log;
mod orders;
#[cfg(feature = "peers")]
mod peer_line;
mod place;
mod request;
mod run;
mod session;
mod settings;
mod shared;
mod slot;
mod slots;
mod view;

pub use candidate::SessionElector;
pub use config::SessionBuilder;
pub use lead_all::LeadAllError;
#[cfg(feature = "peers")]
pub use line::OwnSession;
#[cfg(feature = "peers")]
pub use peer_line::SessionChannel;
pub use session::{LockNameError, Session};
pub use slots::{Slot, Slots};
