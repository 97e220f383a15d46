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
//! | Kubernetes Leases | `kubernetes` | `kubernetes` |
//!
//! Each of these stores is a [`ConditionalStore`](leaderelection::implement::ConditionalStore), and
//! [`ObjectLock`](leaderelection::ObjectLock) turns a store into a lock. A Kubernetes Lease holds only the record of a
//! lock. [`url`] reads a lock of any store from a URL. [`prices`] has the list prices of requests.
//!
//! On S3, `s3` has the credentials of the AWS SDK, directory buckets, and errors that name the cause. `object-store`, with the client of
//! the `object_store` crate that the program brings, has a fifth fewer crates and needs an older Rust.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "azure")]
#[doc(inline)]
pub use leaderelection_azure as azure;
#[cfg(feature = "gcs")]
#[doc(inline)]
pub use leaderelection_gcs as gcs;
#[cfg(feature = "kubernetes")]
#[doc(inline)]
pub use leaderelection_kubernetes as kubernetes;
#[cfg(feature = "object-store")]
#[doc(inline)]
pub use leaderelection_object_store as object_store;
#[cfg(feature = "opendal")]
#[doc(inline)]
pub use leaderelection_opendal as opendal;
#[cfg(feature = "s3")]
#[doc(inline)]
pub use leaderelection_s3 as s3;

pub use self::open::open;

#[cfg(unix)]
pub mod file;
mod open;
pub mod prices;
pub mod url;

#[cfg(all(doctest, feature = "s3"))]
#[doc = include_str!("../README.md")]
struct Readme;
