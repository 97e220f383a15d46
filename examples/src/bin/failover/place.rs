//! Where the lock and the log are.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use leaderelection::{ConditionalStore, StoreError};
use leaderelection_backends::file::FileStore;
use leaderelection_backends::url::S3Location;
use leaderelection_examples::fenced_log::{Entry, FencedLog, ReadError};
use url::Url;

const EXAMPLES: &str =
    "a right one is file:///var/tmp/demo/lock or s3://bucket/demo/lock?endpoint=http://127.0.0.1:8333";

pub type Log = FencedLog<Arc<dyn ConditionalStore>>;

/// The lock's URL. The log is next to it.
#[derive(Clone, Debug)]
pub struct Place {
    url: String,
    location: Location,
}

#[derive(Clone, Debug)]
enum Location {
    File { directory: PathBuf, key: String },
    S3(S3Location),
}

/// The store at a [`Place`], and the keys in it.
#[derive(Clone, Debug)]
pub struct Site {
    pub store: Arc<dyn ConditionalStore>,
    pub lock_key: String,
    log_key: String,
}

impl Place {
    pub async fn open(&self) -> Site {
        let (store, lock_key): (Arc<dyn ConditionalStore>, _) = match &self.location {
            Location::File { directory, key } => (Arc::new(FileStore::new(directory)), key.clone()),
            Location::S3(location) => (Arc::new(location.open().await), location.key.clone()),
        };
        let log_key = format!("{lock_key}.log");
        Site { store, lock_key, log_key }
    }
}

impl Site {
    pub fn log(&self) -> Log {
        FencedLog::new(Arc::clone(&self.store), &self.log_key)
    }

    /// Takes the place for this run: a store that cannot be used shows it here, and a place that is in
    /// use is refused, where the candidates would compete for somebody's real lock.
    pub async fn claim(&self) -> anyhow::Result<()> {
        for key in [&self.lock_key, &self.log_key] {
            let name = self.store.describe(key);
            let found = self.store.get(key).await?;
            ensure!(found.is_none(), "{name} exists already; give --store a key that nothing uses, or delete it");
        }
        self.log().create().await?;
        Ok(())
    }

    /// The log's entries. A store tries only once, and one lost answer is no verdict.
    pub async fn entries(&self) -> Result<Vec<Entry>, ReadError> {
        for _ in 0..5 {
            if let Ok(entries) = self.log().entries().await {
                return Ok(entries);
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        self.log().entries().await
    }

    /// Deletes what this run wrote.
    pub async fn clear(&self) {
        for key in [&self.lock_key, &self.log_key] {
            if let Err(error) = self.delete(key).await {
                let name = self.store.describe(key);
                eprintln!("warning: {name} was not deleted: {:#}", anyhow::Error::new(error));
            }
        }
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        match self.store.get(key).await? {
            Some(object) => self.store.delete(key, &object.version).await,
            None => Ok(()),
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        let location = match scheme {
            Some("s3") => Location::S3(text.parse().map_err(|error| format!("{error}"))?),
            Some("file") => file_location(text).ok_or(format!("no directory and name in it; {EXAMPLES}"))?,
            _ => return Err(format!("not the URL of a store; {EXAMPLES}")),
        };
        Ok(Self { url: text.to_owned(), location })
    }
}

fn file_location(text: &str) -> Option<Location> {
    let path = Url::parse(text).ok()?.to_file_path().ok()?;
    let key = path.file_name()?.to_str()?.to_owned();
    Some(Location::File { directory: path.parent()?.to_owned(), key })
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_url_is_shown_a_right_one() {
        for text in ["", "bucket/key", "gs://bucket/key", "file://", "file:///", "file://host/dir/name"] {
            let error = text.parse::<Place>().unwrap_err();
            assert!(error.contains("a right one is file:///"), "{text}: {error}");
        }
        let error = "s3://bucket".parse::<Place>().unwrap_err();
        assert!(error.contains("s3://bucket/key"), "{error}");
    }

    #[tokio::test]
    async fn the_log_is_next_to_the_lock() {
        let place: Place = "file:///some%20dir/name".parse().unwrap();
        let Location::File { directory, key } = &place.location else { panic!("not a file") };
        assert_eq!((directory.to_str().unwrap(), key.as_str()), ("/some dir", "name"));
        assert_eq!(place.open().await.log_key, "name.log");
    }
}
