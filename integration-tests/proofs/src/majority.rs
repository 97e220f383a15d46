//! A model of processes that use several locks as one, for exploring the real `View` of a `Majority` with the real state
//! machine of the election.
//!
//! Each process uses one lock, or several of which it needs a number. The requests to the locks interleave in every order, and
//! a write may stop between its parts: the process crashes, or a request is lost, doubted, or late. A lock may stop answering,
//! go back in time, or ignore conditions. Processes are rolled from one set of locks to the next by the rule of the rollouts. A
//! process may be refused by a lock, may take the lease back from a worse rank, may have left a part of a write behind in an
//! earlier life, may reclaim its identity, may believe the ages of the locks, and may compete for a job. An operator may release
//! one lock. The model asks whether two processes lead at a time, whether a token goes back, whether a leader loses its term
//! without a reason, whether a candidate keeps a part alone, whether a job is done again or its mark is lost, and whether nobody
//! leads for too long.

mod action;
mod call;
mod proof;
mod settings;
mod setup;
mod step;
mod world;
mod write;

pub use settings::{broken, larger, questions};
