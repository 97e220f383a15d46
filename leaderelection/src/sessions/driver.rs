//! Sessions: one process leads many locks for the price of one renewal per retry period.

mod attempt;
mod candidate;
mod common;
mod config;
mod effects;
mod entry;
mod event_loop;
mod lead_all;
mod log;
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
pub use session::{LockNameError, Session};
pub use slots::{Slot, Slots};
