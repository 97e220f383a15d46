//! Object stores for the [`leaderelection`] crate.
//!
//! | store | feature | lock |
//! |---|---|---|
//! | Amazon S3 and compatible stores | `s3` | `s3::S3Lock` |
//! | a local directory | none | [`FileLock`](file::FileLock) |
//!
//! With the feature `s3`, `url` reads locks that are named by a URL.

#[cfg(unix)]
pub mod file;
#[cfg(feature = "s3")]
pub mod s3;
#[cfg(feature = "s3")]
pub mod url;
