//! Object stores for the [`leaderelection`] crate.
//!
//! | store | feature | module |
//! |---|---|---|
//! | a local directory | none | [`file`](mod@file) |
//! | a local directory with one file per write | none | [`file`](mod@file) |
//! | Amazon S3 and compatible stores | `s3` | `s3` |
//! | Google Cloud Storage | `gcs` | `gcs` |
//! | Azure Blob Storage | `azure` | `azure` |
//! | any store of the `object_store` crate | `object-store` | `object_store` |
//! | many services of the `opendal` crate | `opendal` | `opendal` |
//! | Leases of Kubernetes | `kubernetes` | `kubernetes` |
//!
//! Each of these stores is a [`ConditionalStore`](leaderelection::ConditionalStore), and
//! [`ObjectLock`](leaderelection::ObjectLock) turns a store into a lock. A Lease of Kubernetes holds only the record of
//! a lock. [`url`] reads a lock of any store from
//! a URL. [`prices`] has the list prices of requests.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "azure")]
pub mod azure;
#[cfg(any(feature = "azure", feature = "opendal-services", feature = "s3"))]
mod ca;
#[cfg(unix)]
pub mod file;
#[cfg(feature = "gcs")]
pub mod gcs;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
#[cfg(feature = "object-store")]
pub mod object_store;
#[cfg(feature = "opendal")]
pub mod opendal;
pub mod prices;
#[cfg(any(
    feature = "azure",
    feature = "gcs",
    feature = "kubernetes",
    feature = "object-store",
    feature = "opendal",
    feature = "s3",
    test
))]
mod request;
#[cfg(feature = "s3")]
pub mod s3;
pub mod url;

/// The value of a variable of the environment, if it has one.
#[cfg(any(feature = "azure", feature = "gcs", feature = "opendal-services", feature = "s3"))]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(all(doctest, feature = "s3"))]
#[doc = include_str!("../README.md")]
struct Readme;
