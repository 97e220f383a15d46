//! Leader election in any store of the `object_store` crate: a store of the [`leaderelection`] crate.
//!
//! [`ObjectStoreLock`] is a lock, and [`ObjectStoreAdapter`] the store below it, over the one that the program has.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub use self::credentials::KeptCredentials;
pub use self::store::{ObjectStoreAdapter, ObjectStoreLock};

mod credentials;
mod error;
mod key;
mod store;
mod version;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
