//! Leader election by Kubernetes Leases: a store of the [`leaderelection`] crate, on the `kube` crate.
//!
//! [`KubernetesLeaseLock`] is a lock, [`LeaseStore`] the store below it, and [`LeaseLocation`] reads a lock from a URL. A Lease holds
//! only the record of a lock. [`TokenReviewer`] tells who owns a token.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub use leaderelection_store_support::url::UrlError;

pub use self::announcer::Announcer;
pub use self::location::LeaseLocation;
pub use self::reviewer::TokenReviewer;
pub use self::store::{KubernetesLeaseLock, LeaseStore};

mod announcer;
mod client;
mod command;
mod error;
mod lease;
mod location;
mod reviewer;
mod seen;
mod server;
mod store;
mod tokens;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
