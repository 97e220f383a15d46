//! URLs of blobs.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;
use azure_core::credentials::Secret;
use leaderelection::implement::{ConditionalStore, FromEnv};
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_store_support::ca::Authorities;
use leaderelection_store_support::url::{
    ANY, Parameter, Parts, Place, Scheme, UrlError, Value, check_key, check_name, checked_ca, escaped,
};
use leaderelection_store_support::{CompiledHere, text_of_url, variable};

use crate::host::{self, PUBLIC};
use crate::{AzureCredential, AzureStore};

const EXAMPLE: &str =
    "az://account/container/blob or https://account.blob.core.windows.net/container/blob, with or without a SAS";

/// The parameters of all URLs. A whole URL has those of its SAS beside them.
const SCHEME: Scheme<AzureLocation> = Scheme {
    name: "az",
    parameters: &[Parameter {
        name: "ca",
        help: "a file with the certificates of authorities",
        value: Value::Text(checked_ca, |location| &mut location.ca),
    }],
    refused: &[],
};

/// The form of URL that is meant with the address of another store.
const OF_S3: &str = "for an S3-compatible store, write s3://bucket/key?endpoint=http://host";

/// The variables by which an environment shows that it is one of Azure's.
const SIGNS: [&str; 4] = [ACCOUNT, "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE", "IDENTITY_ENDPOINT"];

const ACCOUNT: &str = "AZURE_STORAGE_ACCOUNT";
const CONNECTION_STRING: &str = "AZURE_STORAGE_CONNECTION_STRING";

/// A blob: `az://account/container/blob?ca=…`, or its whole URL, with or without a SAS. The parameter `ca` is optional.
///
/// On an IP address and on `localhost`, as emulators have it, the account is the first part of the path.
///
/// ```
/// use leaderelection_azure::AzureLocation;
///
/// let location: AzureLocation = "az://account/container/locks/scheduler".parse()?;
/// assert_eq!(location.container_url, "https://account.blob.core.windows.net/container");
/// assert_eq!(location.key, "locks/scheduler");
/// # Ok::<(), leaderelection_azure::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AzureLocation {
    /// The storage account.
    pub account: String,
    /// The container.
    pub container: String,
    /// The container's URL, without a SAS.
    pub container_url: String,
    /// The blob's name.
    pub key: String,
    /// The query of the URL, if the URL had one. Neither `Debug` nor `Display` shows the query.
    pub sas: Option<Secret>,
    /// The path of a file with certificates of authorities in PEM, which are trusted beside those of the system.
    pub ca: Option<String>,
}

impl AzureLocation {
    /// Names a blob in a container of an account of the public cloud, without a SAS. For other clouds and emulators,
    /// parse the blob's URL.
    ///
    /// # Errors
    ///
    /// If the name of the account or of the container is invalid, or if the key is empty, has a [character that nobody
    /// sees](leaderelection::names), or is one that Azure shortens.
    pub fn new(
        account: impl Into<String>,
        container: impl Into<String>,
        key: impl Into<String>,
    ) -> Result<Self, UrlError> {
        let (account, container) = (account.into().to_ascii_lowercase(), container.into());
        let endpoint = format!("https://{account}{PUBLIC}");
        Self::checked(account, container, &endpoint, key.into()).map_err(wrong)
    }

    /// Returns the same blob with a parameter of its URL, such as `with("ca", "/etc/ssl/ca.pem")`.
    ///
    /// # Errors
    ///
    /// If the URL has no such parameter, or if the value is invalid.
    pub fn with(mut self, parameter: &str, value: &str) -> Result<Self, UrlError> {
        SCHEME.set_one(&mut self, parameter, value).map_err(wrong)?;
        Ok(self)
    }

    fn checked(account: String, container: String, endpoint: &str, key: String) -> Result<Self, String> {
        check_name(&account, "account", "no account")
            .and_then(|()| check_container(&container))
            .and_then(|()| check_key(&key, "no blob after the container"))?;
        // https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata
        if key.contains('\\') || key.split('/').any(|part| part.ends_with('.')) || key.ends_with('/') {
            let problem = "the blob's name has a backslash, a part that ends with a dot, or a slash at its end, which Azure changes; \
                           choose another name";
            return Err(problem.to_owned());
        }
        let container_url = format!("{endpoint}/{container}");
        Ok(Self { account, container, container_url, key, sas: None, ca: None })
    }

    /// Opens the store in this container. The credential is the URL's SAS, otherwise that of
    /// `AZURE_STORAGE_CONNECTION_STRING`, otherwise that of [`AzureCredential::from_environment`].
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`] if the connection string is of another account, if a credential is invalid, or if neither
    /// the host nor the environment shows that this is Azure. Nothing is sent.
    pub fn open(&self) -> Result<AzureStore, StoreError> {
        let authorities = self.ca.as_deref().map(Authorities::of_url);
        if let Some(sas) = &self.sas {
            let url = format!("{}?{}", self.container_url, sas.secret());
            return AzureStore::trusting(&url, AzureCredential::InUrl, authorities);
        }
        match variable(CONNECTION_STRING) {
            Some(text) => self.open_with(&text, authorities),
            None if !host::is_blob_host(&self.container_url) && !SIGNS.iter().any(|name| variable(name).is_some()) => {
                let message = format!(
                    "{self}: an https:// or http:// URL names an Azure blob, but this is not a host of Azure; {OF_S3}; \
                     for a blob, set {CONNECTION_STRING}, or add the SAS to the URL"
                );
                Err(StoreError::new(StoreErrorKind::Fatal, message))
            }
            None => {
                // The service of tokens is reached as the store is.
                let credential = AzureCredential::from_environment_trusting(authorities.as_ref())?;
                AzureStore::trusting(&self.container_url, credential, authorities)
            }
        }
    }

    fn open_with(&self, connection_string: &str, authorities: Option<Authorities>) -> Result<AzureStore, StoreError> {
        let store = AzureStore::of_connection_string(connection_string, &self.container, authorities)?;
        // Any key will do, and that of a prefix is none.
        let found = format!("{}/lock", store.container_url()).parse().ok();
        if found.as_ref().map(|found: &Self| &found.account) == Some(&self.account) {
            return Ok(store);
        }
        let message =
            format!("{CONNECTION_STRING} is not for the storage account {}; correct it, or the URL", self.account);
        Err(StoreError::new(StoreErrorKind::Fatal, message))
    }
}

/// Opens the store as [`AzureLocation::open`] does, in the account that the environment names.
#[async_trait]
impl FromEnv for AzureStore {
    async fn from_env(container: &str) -> Result<Self, StoreError> {
        let wrong = |problem| StoreError::new(StoreErrorKind::Fatal, problem);
        check_container(container).map_err(wrong)?;
        match (variable(ACCOUNT), variable(CONNECTION_STRING)) {
            (Some(account), _) => AzureLocation::new(account, container, ANY).map_err(UrlError::fatal)?.open(),
            (None, Some(text)) => Self::from_connection_string(&text, container),
            (None, None) => Err(wrong(format!("no storage account; set {ACCOUNT} or {CONNECTION_STRING}"))),
        }
    }
}

impl FromStr for AzureLocation {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let (number, Parts { authority, path, query }) = Parts::of(text, &["az", "https", "http"]).map_err(wrong)?;
        let scheme = [None, Some("https"), Some("http")][number];
        let authority = &*authority.to_ascii_lowercase();
        let authority = host::without_port_of(scheme, authority);
        let (account, endpoint, path) = match scheme {
            None => (authority, format!("https://{authority}{PUBLIC}"), path.as_str()),
            Some(_) if !host::is_host(authority) => return Err(wrong("the host's name is invalid")),
            Some(_) if host::is_of(authority, host::S3) => {
                return Err(another("an object of S3", "s3://bucket/key?region=eu-central-1"));
            }
            Some(_) if host::is_of(authority, host::GOOGLE) => {
                return Err(another("an object of Google's", "gs://bucket/object"));
            }
            Some(scheme) if host::is_emulator(authority) => {
                let (account, path) = path.split_once('/').unwrap_or((&path, ""));
                (account, format!("{scheme}://{authority}/{account}"), path)
            }
            Some(scheme) => {
                let account = authority.split(['.', ':']).next().unwrap_or_default();
                (account, format!("{scheme}://{authority}"), path.as_str())
            }
        };
        let (container, key) = path.split_once('/').unwrap_or((path, ""));
        if scheme.is_none() && !container.is_empty() && key.is_empty() {
            return Err(wrong("no blob after the container, or no account before it"));
        }
        let location = Self::checked(account.to_owned(), container.to_owned(), &endpoint, key.to_owned());
        let mut location = location.map_err(|problem| match host::is_blob_host(&endpoint) {
            true => wrong(problem),
            false => wrong(format!(
                "{OF_S3}; an http:// or https:// URL names an Azure blob, and this one is invalid: {problem}"
            )),
        })?;
        let (ours, sas): (Vec<_>, Vec<_>) =
            query.into_iter().flat_map(|query| query.split('&')).partition(|&one| one.starts_with("ca="));
        SCHEME.set(&mut location, Some(&ours.join("&"))).map_err(wrong)?;
        if !sas.is_empty() && !sas.iter().any(|parameter| parameter.starts_with("sig=")) {
            return Err(wrong(
                "the query is a SAS without sig; without a SAS, an Azure URL takes only ca; to name another host, write the blob's \
                 https:// URL; a ? in a blob's name is written %3F",
            ));
        }
        location.sas = Some(sas.join("&")).filter(|sas| !sas.is_empty()).map(Secret::new);
        Ok(location)
    }
}

impl fmt::Display for AzureLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account, container, container_url, .. } = self;
        let (key, query) = (escaped(&self.key), SCHEME.query(self));
        if *container_url == format!("https://{account}{PUBLIC}/{container}") {
            return write!(f, "az://{account}/{container}/{key}{query}");
        }
        write!(f, "{container_url}/{key}{query}")
    }
}

fn check_container(container: &str) -> Result<(), String> {
    check_name(container, "container", "no container after the account")
}

impl Place for AzureLocation {
    fn key(&self) -> &str {
        &self.key
    }

    fn key_mut(&mut self) -> &mut String {
        &mut self.key
    }

    fn store(&self) -> CompiledHere<'_, Result<Arc<dyn ConditionalStore>, StoreError>> {
        Box::pin(std::future::ready(self.open().map(|store| Arc::new(store) as Arc<dyn ConditionalStore>)))
    }

    fn server(&self) -> CompiledHere<'_, Result<Option<String>, StoreError>> {
        Box::pin(std::future::ready(self.open().map(|store| Some(store.container_url().to_owned()))))
    }

    fn secret(&self) -> Option<&'static str> {
        self.sas.as_ref().map(|_| {
            "a SAS, which is a secret and is not written; take the SAS off the location first, and give it by \
             AZURE_STORAGE_CONNECTION_STRING"
        })
    }
}

text_of_url!(AzureLocation);

/// The error of a URL that people copy from the console of another cloud.
fn another(what: &str, example: &'static str) -> UrlError {
    UrlError::new(format!("an https:// URL names an Azure blob, but this is {what}"), example)
}

fn wrong(problem: impl Into<String>) -> UrlError {
    UrlError::new(problem, EXAMPLE)
}

#[cfg(test)]
mod tests;
