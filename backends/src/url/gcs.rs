//! `gs://` URLs.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use google_cloud_auth::credentials::{Credentials, anonymous};
use google_cloud_storage::client::{Storage, StorageControl};
use leaderelection::store::FromEnv;
use leaderelection::{StoreError, StoreErrorKind};

use super::ca::NOT_OF_GOOGLE;
use super::compiled::CompiledHere;
use super::parts::{Parts, check_key, check_name, checked_endpoint, escaped, parameters, query};
use super::{ANY, UrlError};
use crate::gcs::GcsStore;
use crate::gcs::found::Found;
use crate::request::{Words, failed};
use crate::variable;

const EXAMPLE: &str =
    "gs://bucket/object or gs://bucket/object?endpoint=https://storage.europe-west3.rep.googleapis.com";

/// The place of credentials.
const CREDENTIALS: &str = "GOOGLE_APPLICATION_CREDENTIALS";

const EMULATOR: &str = "STORAGE_EMULATOR_HOST";

/// An object in Google Cloud Storage: `gs://bucket/object?endpoint=…`.
///
/// The endpoint is a regional one, or that of Private Service Connect. Google's client chooses the `Host` header.
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
    /// The server that is asked; `None` for the emulator that `STORAGE_EMULATOR_HOST` names, or else Google's.
    pub endpoint: Option<String>,
}

impl GcsLocation {
    /// Names an object in a bucket.
    ///
    /// # Errors
    ///
    /// If the name of the bucket is invalid, or if the key is empty or has a [character that nobody sees](leaderelection::names).
    pub fn new(bucket: impl Into<String>, key: impl Into<String>) -> Result<Self, UrlError> {
        let (bucket, key) = (bucket.into(), key.into());
        check_name(&bucket, "bucket", "no bucket")
            .and_then(|()| check_key(&key, "no object behind the bucket"))
            .map_err(|problem| wrong(&problem))?;
        Ok(Self { bucket, key, endpoint: None })
    }

    /// Returns the same object on another server: a regional endpoint, or one of Private Service Connect.
    ///
    /// # Errors
    ///
    /// If the endpoint is not a URL of the scheme http or https, or if the endpoint has credentials, a query or a
    /// fragment.
    pub fn with_endpoint(mut self, endpoint: &str) -> Result<Self, UrlError> {
        self.endpoint = Some(checked_endpoint(endpoint, CREDENTIALS).map_err(|problem| wrong(&problem))?);
        Ok(self)
    }

    /// The server that [`open`](Self::open) asks: the URL's, or the emulator that `STORAGE_EMULATOR_HOST` names, or
    /// Google's.
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.chosen().unwrap_or_else(|| "https://storage.googleapis.com".to_owned())
    }

    /// `None` leaves the choice to Google's client, which knows other universes than googleapis.com.
    fn chosen(&self) -> Option<String> {
        self.endpoint.clone().or_else(emulator)
    }

    /// Opens the store in this bucket, with Google's application default credentials. Where `STORAGE_EMULATOR_HOST`
    /// names an emulator (`127.0.0.1:9023`, or a URL), the store needs no credentials.
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
            let unfit = |words| {
                let advice = format!("no client can be made; check the credentials, or {EMULATOR}");
                failed(&self.to_string(), (StoreErrorKind::Fatal, advice), words)
            };
            // Each client that is made has the same credentials, which keep their token.
            let found = match emulator() {
                Some(_) => None,
                None => Some(Found::new().map_err(|error| unfit(Words::of_error(&error)))?),
            };
            let credentials = match &found {
                Some(found) => Credentials::from(found.clone()),
                None => anonymous::Builder::new().build(),
            };
            let (endpoint, of_control) = (self.chosen(), (self.chosen(), credentials.clone()));
            let make = move || {
                let storage = Storage::builder().with_credentials(credentials.clone());
                endpoint.iter().fold(storage, |storage, endpoint| storage.with_endpoint(endpoint)).build()
            };
            let client = make().await.map_err(|error| unfit(Words::of_error(&error)))?;
            let store = GcsStore::new(client, &self.bucket).with_found(found).with_renewal(make);
            Ok(store.with_control(move || {
                let (endpoint, credentials) = &of_control;
                let control = StorageControl::builder().with_credentials(credentials.clone());
                endpoint.iter().fold(control, |control, endpoint| control.with_endpoint(endpoint)).build()
            }))
        })
    }
}

/// Opens the store as [`GcsLocation::open`] does.
#[async_trait]
impl FromEnv for GcsStore {
    async fn from_env(bucket: &str) -> Result<Self, StoreError> {
        GcsLocation::new(bucket, ANY).map_err(UrlError::fatal)?.open().await
    }
}

impl FromStr for GcsLocation {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let Parts { authority: bucket, path: key, query } = Parts::parse(text, "gs", EXAMPLE)?;
        let mut location = Self::new(bucket, key)?;
        for (name, value) in parameters(query).map_err(|problem| wrong(&problem))? {
            match &*name {
                "endpoint" => location = location.with_endpoint(&value)?,
                "ca" => return Err(wrong(NOT_OF_GOOGLE)),
                _ => return Err(wrong("a parameter other than endpoint; a ? in an object's name is written %3F")),
            }
        }
        Ok(location)
    }
}

fn wrong(problem: &str) -> UrlError {
    UrlError { problem: problem.to_owned(), example: EXAMPLE }
}

/// The URL of the emulator that the environment names.
fn emulator() -> Option<String> {
    let host = variable(EMULATOR)?;
    let url = if host.contains("://") { host } else { format!("http://{host}") };
    // What is no URL is told by the client.
    Some(checked_endpoint(&url, CREDENTIALS).unwrap_or(url))
}

impl fmt::Display for GcsLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let query = query([("endpoint", self.endpoint.as_deref())]);
        write!(f, "gs://{}/{}{query}", self.bucket, escaped(&self.key))
    }
}
