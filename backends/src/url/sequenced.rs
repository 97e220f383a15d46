//! `sequenced+file://` URLs.

use std::fmt;
use std::str::FromStr;

use leaderelection_sequenced::{DEFAULT_KEEP, SequencedStore};

use super::UrlError;
use super::ca::{self, NOT_OF_FILES};
use super::file::FileLocation;
use super::parts::checked_keep;
use super::strange::strange;
use crate::file::CreateOnlyDirectory;

const EXAMPLE: &str = "sequenced+file:///directory/name?keep=100";

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

impl FromStr for SequencedFileLocation {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let wrong = |problem: &str| UrlError { problem: problem.to_owned(), example: EXAMPLE };
        if let Some(problem) = strange(text) {
            return Err(wrong(&problem));
        }
        let Some(file) = text.strip_prefix("sequenced+") else {
            return Err(wrong("the URL does not begin with sequenced+file://"));
        };
        let (file, query) = file.split_once('?').map_or((file, None), |(file, query)| (file, Some(query)));
        if query.is_some_and(ca::is_in) {
            return Err(wrong(NOT_OF_FILES));
        }
        let keep = match query.map(|query| query.strip_prefix("keep=")) {
            None => DEFAULT_KEEP,
            Some(keep) => keep
                .and_then(checked_keep)
                .ok_or_else(|| wrong("the only parameter is keep, a number of at least 1"))?,
        };
        let file = file.parse().map_err(|UrlError { problem, .. }| UrlError { problem, example: EXAMPLE })?;
        Ok(Self { file, keep })
    }
}

impl fmt::Display for SequencedFileLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sequenced+{}", self.file)?;
        if self.keep == DEFAULT_KEEP { Ok(()) } else { write!(f, "?keep={}", self.keep) }
    }
}
