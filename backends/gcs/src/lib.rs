//! Leader election in Google Cloud Storage: a store of the [`leaderelection`] crate, on Google's own `google-cloud-storage`
//! crate.
//!
//! [`GcsLock`] is a lock, [`GcsStore`] the store below it, and [`GcsLocation`] reads a lock from a URL.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub use leaderelection_store_support::url::UrlError;

pub use self::location::GcsLocation;
pub use self::store::{GcsLock, GcsStore};

mod error;
mod found;
mod location;
mod store;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
