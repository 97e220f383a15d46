//! `file://` URLs.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use leaderelection::names;

use super::UrlError;
use super::ca::{self, NOT_OF_FILES};
use super::parts::{Parts, check_key, escaped};
use crate::file::FileStore;

const EXAMPLE: &str = "file:///directory/name";

/// An object in a local directory: `file:///directory/name`.
///
/// Characters with a special meaning in a URL are percent-encoded.
///
/// ```
/// use leaderelection_backends::url::FileLocation;
///
/// let location: FileLocation = "file:///var/lib/my-service/scheduler".parse()?;
/// assert_eq!((location.directory.as_str(), location.key.as_str()), ("/var/lib/my-service", "scheduler"));
/// # Ok::<(), leaderelection_backends::url::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileLocation {
    /// The store's directory, an absolute path without `.`, `..`, and slashes in a row or at its end.
    pub directory: String,
    /// The object's key: the last part of the path.
    pub key: String,
}

impl FileLocation {
    /// Names the object `name` in a directory.
    ///
    /// ```
    /// use leaderelection_backends::url::FileLocation;
    ///
    /// let location = FileLocation::directory("/var/lib/my service", "scheduler")?;
    /// assert_eq!(location.to_string(), "file:///var/lib/my%20service/scheduler");
    /// # Ok::<(), leaderelection_backends::url::UrlError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the path is not absolute or not UTF-8, if it has a part `..`, if the name is empty or has a slash, or if either has
    /// a [character that nobody sees](leaderelection::names).
    pub fn directory(path: impl AsRef<Path>, name: impl Into<String>) -> Result<Self, UrlError> {
        let (path, key) = (path.as_ref(), name.into());
        let directory = path.to_str().ok_or_else(|| wrong("the path of the directory is not UTF-8"))?;
        if !path.is_absolute() {
            return Err(wrong("the path of the directory is not absolute"));
        }
        if key.contains('/') {
            return Err(wrong("a slash in the name; what stands before it belongs to the directory"));
        }
        Self::checked(directory, key)
    }

    fn checked(directory: &str, key: String) -> Result<Self, UrlError> {
        check_key(&key, "no name at the end").map_err(|problem| wrong(&problem))?;
        if let Some(problem) = names::problem_with(directory) {
            return Err(wrong(&format!("the directory {problem}")));
        }
        let parts: Vec<&str> = directory.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        if parts.contains(&"..") || matches!(&*key, "." | "..") {
            // Behind a link, `..` is elsewhere than the text says.
            return Err(wrong("a part that is . or .. leads elsewhere; write the path of the directory that is meant"));
        }
        Ok(Self { directory: format!("/{}", parts.join("/")), key })
    }

    /// Opens the store in this directory.
    #[must_use]
    pub fn open(&self) -> FileStore {
        FileStore::new(&self.directory)
    }
}

impl FromStr for FileLocation {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let parts = Parts::parse(text, "file", EXAMPLE)?;
        if !parts.authority.is_empty() {
            return Err(wrong("a path is absolute, so that three slashes stand in a row"));
        }
        if parts.query.is_some_and(ca::is_in) {
            return Err(wrong(NOT_OF_FILES));
        }
        if parts.query.is_some() {
            return Err(wrong("there are no parameters; a ? in a path is written %3F"));
        }
        let (directory, key) = parts.path.rsplit_once('/').unwrap_or(("", &parts.path));
        Self::checked(directory, key.to_owned())
    }
}

fn wrong(problem: &str) -> UrlError {
    UrlError { problem: problem.to_owned(), example: EXAMPLE }
}

impl fmt::Display for FileLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.directory == "/" { "" } else { "/" };
        write!(f, "file://{}{separator}{}", escaped(&self.directory), escaped(&self.key))
    }
}
