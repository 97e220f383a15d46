//! The oracle, which knows true time and sees every event, and checks every promise.
//!
//! The world tells the oracle what happens. The oracle knows nothing of the world, and each of its files with checks works on
//! [what it knows](knowledge).

mod callbacks;
mod duplicates;
mod failures;
mod hostile;
mod interventions;
mod jobs;
mod knowledge;
mod object;
mod peers;
mod process;
mod property;
mod ranks;
mod released;
mod requests;
mod terms;
mod two_locks;

pub use knowledge::Stats;
pub(crate) use knowledge::{Oracle, Outcome, Plan};
pub(crate) use process::Newcomer;
pub use property::Property;
