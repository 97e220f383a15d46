//! Object stores for the [`leaderelection`] crate.
//!
//! | store | feature | module |
//! |---|---|---|
//! | a local directory | none | [`file`] |
//! | Amazon S3 and compatible stores | `s3` | `s3` |
//! | Azure Blob Storage | `azure` | `azure` |
//!
//! Each is a [`ConditionalStore`](leaderelection::ConditionalStore), and
//! [`ObjectLock`](leaderelection::ObjectLock) makes a lock of it.

#[cfg(feature = "azure")]
pub mod azure;
#[cfg(unix)]
pub mod file;
#[cfg(feature = "azure")]
mod request;
#[cfg(feature = "s3")]
pub mod s3;
pub mod url;
