//! Leader election in Azure Blob Storage: a store of the [`leaderelection`] crate, on Microsoft's own `azure_storage_blob`
//! crate.
//!
//! [`AzureLock`] is a lock, [`AzureStore`] the store below it, and [`AzureLocation`] reads a lock from a URL.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub use leaderelection_store_support::url::UrlError;

pub use self::credential::AzureCredential;
pub use self::location::AzureLocation;
pub use self::store::{AzureLock, AzureStore};

mod connection_string;
mod credential;
mod environment;
mod error;
mod host;
mod location;
mod shared_key;
mod store;
mod tokens;
mod transport;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
