//! Means for authors of stores for the [`leaderelection`] crate.
//!
//! A store is a [`ConditionalStore`](leaderelection::implement::ConditionalStore). What every store does alike that is
//! reached over a network is here, so that its own file says what is special about it:
//!
//! - [`request`]: a limit on the time and the size of a request, a client that is made anew after a call without an answer,
//!   credentials that are loaded before they end, and errors that say what to do;
//! - `ca`, with the feature `authorities`: certificates of a private network's authorities; and `tls`, the check for its provider;
//! - [`url`](mod@url): the table of a store's URLs, and their parser.
//!
//! The stores of this project share this crate, and its versions change with them. `leaderelection-conformance` judges a store.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "authorities")]
pub mod ca;
mod compiled;
pub mod request;
#[cfg(feature = "authorities")]
pub mod tls;
pub mod url;

/// The version whose traits the macros implement.
pub use serde;

pub use self::compiled::CompiledHere;

/// The value of a variable of the environment, if it has one.
#[must_use]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
