//! `gs://` URLs.

use std::env;
use std::fmt;
use std::str::FromStr;

use google_cloud_auth::credentials::anonymous;
use google_cloud_storage::client::{Storage, StorageControl};
use leaderelection::{StoreError, StoreErrorKind};

use super::UrlError;
use super::compiled::CompiledHere;
use super::parts::{Parts, check_name, escaped};
use crate::gcs::GcsStore;
use crate::request::Words;

const EXAMPLE: &str = "gs://bucket/object";

const EMULATOR: &str = "STORAGE_EMULATOR_HOST";

/// An object in Google Cloud Storage: `gs://bucket/object`.
///
/// ```
/// use leaderelection_backends::url::GcsLocation;
///
/// let location: GcsLocation = "gs://bucket/locks/scheduler".parse()?;
/// assert_eq!((location.bucket.as_str(), location.key.as_str()), ("bucket", "locks/scheduler"));
/// # Ok::<(), leaderelection_backends::url::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GcsLocation {
    /// The bucket.
    pub bucket: String,
    /// The object's name.
    pub key: String,
}

impl GcsLocation {
    /// Names an object in a bucket.
    ///
    /// # Errors
    ///
    /// If the name of the bucket is invalid, or if the key is empty.
    pub fn new(bucket: impl Into<String>, key: impl Into<String>) -> Result<Self, UrlError> {
        let (bucket, key) = (bucket.into(), key.into());
        check_name(&bucket, "bucket", "no bucket").map_err(|problem| wrong(&problem))?;
        if key.is_empty() {
            return Err(wrong("no object behind the bucket"));
        }
        Ok(Self { bucket, key })
    }

    /// The server that [`open`](Self::open) asks: Google's, or the emulator that `STORAGE_EMULATOR_HOST` names.
    #[must_use]
    pub fn endpoint(&self) -> String {
        emulator().unwrap_or_else(|| "https://storage.googleapis.com".to_owned())
    }

    /// Opens the store in this bucket, with Google's application default credentials. On the emulator that
    /// `STORAGE_EMULATOR_HOST` names (`127.0.0.1:9023`, or a URL), the store needs no credentials.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`] if there are no credentials, or if the credentials or the emulator's address are
    /// invalid.
    pub async fn open(&self) -> Result<GcsStore, StoreError> {
        self.opened().await
    }

    fn opened(&self) -> CompiledHere<'_, Result<GcsStore, StoreError>> {
        Box::pin(async move {
            match emulator() {
                Some(endpoint) => self.open_emulator(endpoint).await,
                None => Ok(GcsStore::new(self.client(Storage::builder()).await?, &self.bucket)),
            }
        })
    }

    async fn open_emulator(&self, endpoint: String) -> Result<GcsStore, StoreError> {
        let credentials = || anonymous::Builder::new().build();
        let client = Storage::builder().with_endpoint(&endpoint).with_credentials(credentials());
        let store = GcsStore::new(self.client(client).await?, &self.bucket);
        Ok(store.with_control(move || {
            StorageControl::builder().with_endpoint(&endpoint).with_credentials(credentials()).build()
        }))
    }

    async fn client(
        &self,
        builder: google_cloud_storage::builder::storage::ClientBuilder,
    ) -> Result<Storage, StoreError> {
        builder.build().await.map_err(|error| {
            let message = format!("{self}: no client can be made; check the credentials, or {EMULATOR}");
            Words::add_to(Words::of_error(&error), StoreError::new(StoreErrorKind::Fatal, message))
        })
    }
}

impl FromStr for GcsLocation {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let Parts { authority: bucket, path: key, query } = Parts::parse(text, "gs", EXAMPLE)?;
        let location = Self::new(bucket, key)?;
        if query.is_some() {
            return Err(wrong("there are no parameters; a ? in an object's name is written %3F"));
        }
        Ok(location)
    }
}

fn wrong(problem: &str) -> UrlError {
    UrlError { problem: problem.to_owned(), example: EXAMPLE }
}

/// The URL of the emulator that the environment names.
fn emulator() -> Option<String> {
    let host = env::var(EMULATOR).ok().filter(|host| !host.is_empty())?;
    Some(if host.contains("://") { host } else { format!("http://{host}") })
}

impl fmt::Display for GcsLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gs://{}/{}", self.bucket, escaped(&self.key))
    }
}
