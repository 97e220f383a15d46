//! `file://` URLs.

use std::borrow::Cow;
use std::future::ready;
use std::path::Path;
use std::sync::Arc;

use leaderelection::implement::ConditionalStore;
use leaderelection::{StoreError, names};
use leaderelection_store_support::url::{Place, Scheme, Table, UrlError, check_key, wrong};
use leaderelection_store_support::{CompiledHere, url_of_table};

use crate::file::FileStore;

/// The reason for which the URLs of a directory have no parameter `ca`.
pub(super) const REFUSED: &[(&str, &str)] = &[("ca", "a directory has no server, and so no parameter ca")];

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
        let directory = path.to_str().ok_or_else(|| wrong::<Self>("the path of the directory is not UTF-8"))?;
        if !path.is_absolute() {
            return Err(wrong::<Self>("the path of the directory is not absolute"));
        }
        if key.contains('/') {
            return Err(wrong::<Self>("a slash in the name; what stands before it belongs to the directory"));
        }
        Self::checked(directory, key).map_err(wrong::<Self>)
    }

    fn checked(directory: &str, key: String) -> Result<Self, String> {
        check_key(&key, "no name at the end")?;
        if let Some(problem) = names::problem_with(directory) {
            return Err(format!("the directory {problem}"));
        }
        let parts: Vec<&str> = directory.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        if parts.contains(&"..") || matches!(&*key, "." | "..") {
            // Behind a link, `..` is elsewhere than the text says.
            return Err("the path must not contain .. or end with .; write the full path".to_owned());
        }
        Ok(Self { directory: format!("/{}", parts.join("/")), key })
    }

    /// Opens the store in this directory.
    #[must_use]
    pub fn open(&self) -> FileStore {
        FileStore::new(&self.directory)
    }
}

impl Table for FileLocation {
    const EXAMPLE: &'static str = "file:///directory/name";

    const SCHEMES: &'static [Scheme<Self>] = &[Scheme { name: "file", parameters: &[], refused: REFUSED }];

    fn made(_scheme: &str, authority: &str, path: String) -> Result<Self, String> {
        if !authority.is_empty() {
            return Err("the path must be absolute; write three slashes after file:".to_owned());
        }
        let (directory, key) = path.rsplit_once('/').unwrap_or(("", &path));
        Self::checked(directory, key.to_owned())
    }

    fn authority(&self) -> &str {
        ""
    }

    fn path(&self) -> Cow<'_, str> {
        let directory = self.directory.trim_start_matches('/');
        if directory.is_empty() { Cow::from(&self.key) } else { format!("{directory}/{}", self.key).into() }
    }
}

impl Place for FileLocation {
    fn key(&self) -> &str {
        &self.key
    }

    fn key_mut(&mut self) -> &mut String {
        &mut self.key
    }

    fn store(&self) -> CompiledHere<'_, Result<Arc<dyn ConditionalStore>, StoreError>> {
        Box::pin(ready(Ok(Arc::new(self.open()) as Arc<dyn ConditionalStore>)))
    }
}

url_of_table!(FileLocation);
