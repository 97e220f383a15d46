//! Object stores for the [`leaderelection`] crate.
//!
//! | store | feature | lock |
//! |---|---|---|
//! | a local directory | none | [`FileLock`](file::FileLock) |

#[cfg(unix)]
pub mod file;
