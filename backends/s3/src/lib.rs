//! Leader election in Amazon S3 and the stores that speak its protocol: a store of the [`leaderelection`] crate, on the
//! `aws-sdk-s3` crate.
//!
//! [`S3Lock`] is a lock, [`S3Store`] the store below it, and [`S3Location`] reads a lock from a URL.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub use leaderelection_store_support::url::UrlError;

pub use self::location::S3Location;
pub use self::store::{S3Lock, S3Store};

#[cfg(any(feature = "aws-lc-rs", feature = "ring"))]
use self::authorities::http_client;
#[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
use self::no_tls::http_client;

mod answer;
#[cfg(any(feature = "aws-lc-rs", feature = "ring"))]
mod authorities;
mod chain;
mod client;
mod date;
mod directory;
mod endpoint;
mod environment;
mod error;
mod identity;
mod location;
#[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
mod no_tls;
mod object;
mod store;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
