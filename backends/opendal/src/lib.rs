//! Leader election in services of the `opendal` crate: a store of the [`leaderelection`] crate.
//!
//! [`OpendalAdapter`] is a store over a service that can replace an object on a condition, [`OpendalObjects`] one over a service that
//! can only create, and `OpendalLocation`, with the feature `services`, reads a lock from a URL.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "services")]
pub use leaderelection_store_support::url::UrlError;

#[cfg(feature = "services")]
pub use self::location::{OpendalLocation, OpendalService};
pub use self::objects::OpendalObjects;
pub use self::store::{OpendalAdapter, OpendalLock};

mod error;
mod key;
#[cfg(feature = "services")]
mod location;
mod objects;
mod service;
mod store;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
