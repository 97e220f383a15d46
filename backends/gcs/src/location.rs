//! `gs://` URLs.

use std::sync::Arc;

use async_trait::async_trait;
use google_cloud_auth::credentials::{Credentials, anonymous};
use google_cloud_storage::client::{Storage, StorageControl};
use leaderelection::implement::{ConditionalStore, FromEnv};
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_store_support::request::{Words, failed};
use leaderelection_store_support::tls::check_provider;
use leaderelection_store_support::url::{
    ANY, Parameter, Place, Scheme, Table, UrlError, Value, check_bucket, checked_endpoint, wrong,
};
use leaderelection_store_support::{CompiledHere, url_of_table, variable};

use crate::GcsStore;
use crate::found::Found;

/// The place of credentials.
const CREDENTIALS: &str = "GOOGLE_APPLICATION_CREDENTIALS";

const EMULATOR: &str = "STORAGE_EMULATOR_HOST";

/// The variable with the file of credentials.
const KEY_FILE: &str = "GOOGLE_APPLICATION_CREDENTIALS";

/// An object in Google Cloud Storage: `gs://bucket/object?endpoint=…`.
///
/// The endpoint is a regional one, or that of Private Service Connect. Google's client chooses the `Host` header.
///
/// ```
/// use leaderelection_gcs::GcsLocation;
///
/// let location: GcsLocation = "gs://bucket/locks/scheduler".parse()?;
/// assert_eq!((location.bucket.as_str(), location.key.as_str()), ("bucket", "locks/scheduler"));
/// # Ok::<(), leaderelection_gcs::UrlError>(())
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
        Self::made("gs", &bucket.into(), key.into()).map_err(wrong::<Self>)
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
            check_provider(cfg!(feature = "aws-lc-rs"), "leaderelection-gcs")?;
            let unfit = |words| failed(&self.to_string(), (StoreErrorKind::Fatal, advice()), words);
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

/// What to do if there is no client. The cause tells neither the file nor the variable.
fn advice() -> String {
    match std::env::var_os(KEY_FILE) {
        Some(file) if file.is_empty() => {
            format!("cannot create a client; {KEY_FILE} is empty: unset it, or name a file")
        }
        Some(file) => format!("cannot create a client; check {}, which {KEY_FILE} names", file.display()),
        None => format!("cannot create a client; check the credentials, or {EMULATOR}"),
    }
}

/// Opens the store as [`GcsLocation::open`] does.
#[async_trait]
impl FromEnv for GcsStore {
    async fn from_env(bucket: &str) -> Result<Self, StoreError> {
        GcsLocation::new(bucket, ANY).map_err(UrlError::fatal)?.open().await
    }
}

impl Table for GcsLocation {
    const EXAMPLE: &'static str =
        "gs://bucket/object or gs://bucket/object?endpoint=https://storage.europe-west3.rep.googleapis.com";

    const SCHEMES: &'static [Scheme<Self>] = &[Scheme {
        name: "gs",
        parameters: &[Parameter {
            name: "endpoint",
            help: "the URL of a regional endpoint, or of one of Private Service Connect",
            value: Value::Text(|url| checked_endpoint(url, CREDENTIALS), |location| &mut location.endpoint),
        }],
        refused: &[(
            "ca",
            "gs:// has no parameter ca, because Google's client takes no authorities: name a file with those of the system and \
             your own in SSL_CERT_FILE",
        )],
    }];

    fn made(_scheme: &str, authority: &str, path: String) -> Result<Self, String> {
        check_bucket(authority, &path, "object")?;
        Ok(Self { bucket: authority.to_owned(), key: path, endpoint: None })
    }

    fn authority(&self) -> &str {
        &self.bucket
    }
}

impl Place for GcsLocation {
    fn key(&self) -> &str {
        &self.key
    }

    fn key_mut(&mut self) -> &mut String {
        &mut self.key
    }

    fn store(&self) -> CompiledHere<'_, Result<Arc<dyn ConditionalStore>, StoreError>> {
        Box::pin(async move { Ok(Arc::new(self.open().await?) as Arc<dyn ConditionalStore>) })
    }

    fn server(&self) -> CompiledHere<'_, Result<Option<String>, StoreError>> {
        Box::pin(std::future::ready(Ok(Some(self.endpoint()))))
    }
}

url_of_table!(GcsLocation);

/// The URL of the emulator that the environment names.
fn emulator() -> Option<String> {
    let host = variable(EMULATOR)?;
    let url = if host.contains("://") { host } else { format!("http://{host}") };
    // What is no URL is told by the client.
    Some(checked_endpoint(&url, CREDENTIALS).unwrap_or(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<GcsLocation, String> {
        text.parse().map_err(|error: UrlError| error.to_string())
    }

    #[test]
    fn a_wrong_gs_url_is_shown_a_right_one() {
        for (text, problem) in [
            ("gs:secret", "does not begin with gs://"),
            ("gs:///secret", "no bucket"),
            ("gs://bucket:80/secret", "a port belongs in the endpoint"),
            ("gs://secret@bucket/secret", "credentials"),
            ("gs://bucket", "no object"),
            ("gs://bucket/", "no object"),
            ("gs://bucket/secret?secret=1", "%3F"),
            ("gs://bucket/secret?endpoint=http://user:secret@host", "GOOGLE_APPLICATION_CREDENTIALS"),
            ("gs://bucket/secret#secret", "%23"),
            ("gs://bucket/%FF", "UTF-8"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
            assert!(error.contains("looks like gs://bucket/object or"), "{text}: {error}");
            assert!(!error.contains("secret"), "{text}: {error}");
        }
    }
}
