//! Kubernetes Leases (`coordination.k8s.io/v1`) in an object store.
//!
//! Electors in Go, Java, Python, C# and Rust elect by three requests: they read, create and replace a Lease. [`LeaseApi`]
//! answers them out of any [`ConditionalStore`](leaderelection::implement::ConditionalStore), so they elect without a
//! cluster. The object of a Lease is a [`LeaderElectionRecord`](leaderelection::LeaderElectionRecord), so candidates
//! of this library compete with them on the same lock.
//!
//! The command `leaderelect lease-api` serves this over HTTP.

// Others choose the sizes, the times and the numbers of what this crate reads.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod audit;
mod body;
mod both;
mod caller;
mod discovery;
mod form;
mod lease;
mod leases;
mod listed;
mod object;
mod owner;
mod pace;
mod pages;
mod parts;
mod patch;
mod protobuf;
mod query;
mod quota;
mod seen;
mod selector;
mod served;
mod server;
mod shares;
mod shown;
mod status;
mod table;
mod verbs;
mod watch;

pub use audit::AuditEvent;
pub use both::Both;
pub use caller::{Caller, Role};
pub use server::LeaseApi;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
