//! What the author of a store or a lock needs, and other programs do not.
//!
//! A store implements [`ConditionalStore`], and [`ObjectLock`](crate::ObjectLock) makes a lock of it. Implement
//! [`ObjectStoreBasedLock`](crate::ObjectStoreBasedLock) itself only for a lock that is not one object in a store. The
//! crate `leaderelection-conformance` has a suite for either.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::time::Duration;
//!
//! use leaderelection::implement::{
//!     Bytes, ConditionalStore, ListedObject, ListedPage, PageToken, Precondition, Version, VersionedObject, async_trait,
//! };
//! use leaderelection::{
//!     DefaultLeaderElector, Elector, LeaderElectionConfig, ObjectLock, StoreError, StoreErrorKind,
//! };
//! use tokio::sync::Mutex;
//!
//! /// A table in this process. No version comes twice, because versions count all writes.
//! #[derive(Debug, Default)]
//! struct Table {
//!     rows: Mutex<(u64, BTreeMap<String, VersionedObject>)>,
//! }
//!
//! impl Table {
//!     fn check(&self, key: &str, found: Option<&VersionedObject>, expected: Option<&Version>) -> Result<(), StoreError> {
//!         if found.map(|row| &row.version) == expected {
//!             return Ok(());
//!         }
//!         Err(StoreError::new(StoreErrorKind::Conflict, format!("{} was changed", self.describe(key))))
//!     }
//! }
//!
//! #[async_trait]
//! impl ConditionalStore for Table {
//!     async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
//!         Ok(self.rows.lock().await.1.get(key).cloned())
//!     }
//!
//!     async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
//!         StoreError::check_body(&body, || self.describe(key))?;
//!         let (writes, rows) = &mut *self.rows.lock().await;
//!         let expected = match precondition {
//!             Precondition::Absent => None,
//!             Precondition::Matches(version) => Some(version),
//!         };
//!         self.check(key, rows.get(key), expected)?;
//!         *writes += 1;
//!         let version = Version::new(writes.to_string());
//!         rows.insert(key.to_owned(), VersionedObject::new(body, version.clone()));
//!         Ok(version)
//!     }
//!
//!     async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
//!         let (_, rows) = &mut *self.rows.lock().await;
//!         if expected.is_some() {
//!             self.check(key, rows.get(key), expected)?;
//!         }
//!         rows.remove(key);
//!         Ok(())
//!     }
//!
//!     /// Gives all objects on one page.
//!     async fn list_page(&self, prefix: &str, _: Option<&PageToken>, _: Option<u16>) -> Result<ListedPage, StoreError> {
//!         let (_, rows) = &*self.rows.lock().await;
//!         let below = rows.iter().filter(|(key, _)| key.starts_with(prefix));
//!         let listed = below.map(|(key, row)| ListedObject::new(key, Some(row.version.clone())));
//!         Ok(ListedPage::new(listed.collect(), None))
//!     }
//!
//!     fn describe(&self, key: &str) -> String {
//!         format!("table:{key}")
//!     }
//!
//!     fn min_write_interval(&self) -> Option<Duration> {
//!         None
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let lock = ObjectLock::new(Table::default(), "locks/scheduler", "node-1");
//! let elector = DefaultLeaderElector::new(LeaderElectionConfig::builder(lock, ()).build()?);
//! let term = elector.try_lead().await?;
//! assert!(term.is_valid());
//! term.release().await;
//! # Ok(())
//! # }
//! ```

/// The attribute that implementations of [`ConditionalStore`] and
/// [`ObjectStoreBasedLock`](crate::ObjectStoreBasedLock) carry.
pub use async_trait::async_trait;
/// The body of an object.
pub use bytes::Bytes;

pub use crate::lock::bounded::{NoAnswer, is_given_up, loading_credentials, loading_credentials_of};
pub use crate::lock::versioned::VersionedRecord;
pub use crate::store::{
    Candidacy, ConditionalStore, ConditionalStoreExt, FromEnv, ListedObject, ListedPage, Listing, MAX_BODY_BYTES,
    PageToken, Precondition, StoreCheck, StoreFitness, Version, VersionedObject,
};
