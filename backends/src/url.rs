//! Locks named by a URL, for command lines and configuration files.
//!
//! | URL | names | feature |
//! |---|---|---|
//! | `s3://bucket/key?region=…&endpoint=…&path_style=true` | [`S3Location`] | `s3` |
//!
//! No URL holds credentials: they come from the environment, as each cloud's own tools find them.

pub use self::s3::S3Location;

mod s3;

/// A URL that names no lock. Says what is wrong with it and shows a right one.
///
/// The URL itself is not repeated, in case somebody put a secret into it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; a right URL looks like {example}")]
pub struct UrlError {
    problem: String,
    example: &'static str,
}
