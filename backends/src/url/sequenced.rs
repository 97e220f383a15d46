//! `sequenced+file://` URLs.

use std::borrow::Cow;
use std::future::ready;
use std::sync::Arc;

use leaderelection::StoreError;
use leaderelection::implement::ConditionalStore;
use leaderelection_sequenced::{DEFAULT_KEEP, SequencedStore};
use leaderelection_store_support::url::{Parameter, Place, Scheme, Table, Value};
use leaderelection_store_support::{CompiledHere, url_of_table};

use super::file::{FileLocation, REFUSED};
use crate::file::CreateOnlyDirectory;

/// An object in a local directory with one file per write: `sequenced+file:///directory/name?keep=100`.
///
/// `keep` is the number of newest files that stay. More of them are a history. The default is 2.
///
/// ```
/// use leaderelection_backends::url::SequencedFileLocation;
///
/// let location: SequencedFileLocation = "sequenced+file:///var/lib/my-service/scheduler?keep=100".parse()?;
/// assert_eq!((location.file.key.as_str(), location.keep), ("scheduler", 100));
/// # Ok::<(), leaderelection_backends::url::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SequencedFileLocation {
    /// The directory and the key.
    pub file: FileLocation,
    /// The number of newest files that every write keeps.
    pub keep: u64,
}

impl SequencedFileLocation {
    /// Opens the store in this directory.
    #[must_use]
    pub fn open(&self) -> SequencedStore<CreateOnlyDirectory> {
        SequencedStore::new(CreateOnlyDirectory::new(&self.file.directory)).keep(self.keep)
    }
}

impl Table for SequencedFileLocation {
    const EXAMPLE: &'static str = "sequenced+file:///directory/name?keep=100";

    const SCHEMES: &'static [Scheme<Self>] = &[Scheme {
        name: "sequenced+file",
        parameters: &[Parameter {
            name: "keep",
            help: "the number of newest files that every write keeps",
            value: Value::Count(DEFAULT_KEEP, |location| &mut location.keep),
        }],
        refused: REFUSED,
    }];

    fn made(scheme: &str, authority: &str, path: String) -> Result<Self, String> {
        Ok(Self { file: FileLocation::made(scheme, authority, path)?, keep: DEFAULT_KEEP })
    }

    fn authority(&self) -> &str {
        ""
    }

    fn path(&self) -> Cow<'_, str> {
        self.file.path()
    }
}

impl Place for SequencedFileLocation {
    fn key(&self) -> &str {
        &self.file.key
    }

    fn key_mut(&mut self) -> &mut String {
        &mut self.file.key
    }

    fn store(&self) -> CompiledHere<'_, Result<Arc<dyn ConditionalStore>, StoreError>> {
        Box::pin(ready(Ok(Arc::new(self.open()) as Arc<dyn ConditionalStore>)))
    }
}

url_of_table!(SequencedFileLocation);
