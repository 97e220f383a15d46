//! A model of processes that move from one lock to another, for exploring the real `View` of a `Migration` with the real
//! state machine of the election.
//!
//! Each process uses the old lock, both locks, or the new one. The requests to the two locks interleave in every order, and
//! a write of both may stop between its halves: the process crashes, or a request is lost, doubted, or late. Processes are
//! rolled from one phase to the next by the rule of the rollouts. A process may be refused by the new lock, may take the lease
//! back from a worse rank, may have left half a write behind in an earlier life, may reclaim its identity, may believe the ages
//! of the locks, and may compete for a job. An operator may release one lock. The model asks whether two processes lead at a
//! time, whether a token goes back, whether a leader loses its term without a reason, whether a candidate keeps one lock alone,
//! whether a job is done again or its mark is lost, and whether nobody leads for too long.

mod phase;
mod promise;
mod proof;
mod settings;
mod setup;
mod step;
mod world;

pub use settings::{broken, larger, questions};
