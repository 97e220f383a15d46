//! Azurite, or the container that `LEADERELECTION_TEST_AZURE_URL` names.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use azure_core::credentials::TokenCredential;
use azure_storage_blob::BlobContainerClient;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderValue};
use leaderelection::implement::ConditionalStore;
use leaderelection_backends::azure::{AzureCredential, AzureStore};
use leaderelection_backends::url::AzureLocation;
use leaderelection_integration_tests::proxy::Request;
use leaderelection_integration_tests::proxy::sign::{self, Signer};
use leaderelection_integration_tests::servers::azurite::{Azurite, account_sas};
use tokio::sync::OnceCell;
use url::Url;

use super::{Environment, Service};

pub(crate) const URL_VARIABLE: &str = "LEADERELECTION_TEST_AZURE_URL";

pub(crate) const CONNECTION_STRING: &str = "AZURE_STORAGE_CONNECTION_STRING";

const PERMISSIONS: &str = "rwdlc";

/// A placeholder for a SAS if the proxy adds a token: over plain HTTP, the SDK sends no token.
const NO_SAS: &str = "sig=none";

pub(crate) struct Azure {
    pub(crate) store: AzureStore,
    pub(crate) folder: Option<String>,
    container_url: Url,
    /// The path of the container, for a client of the proxy.
    path: String,
    sas: Option<String>,
    /// The token that replaces a SAS.
    token: HeaderMap,
}

impl Azure {
    pub(crate) async fn new() -> Self {
        match std::env::var(URL_VARIABLE) {
            Ok(url) => Self::at(url.parse().unwrap_or_else(|error| panic!("{URL_VARIABLE}: {error}"))).await,
            Err(_) => Self::on(azurite().await),
        }
    }

    pub(crate) fn on(server: &Azurite) -> Self {
        let container_url: Url = server.container_url("container").parse().expect("a URL");
        Self {
            store: AzureStore::from_connection_string(&server.connection_string(), "container").expect("a store"),
            folder: None,
            path: container_url.path().to_owned(),
            container_url,
            // The signature of a SAS covers no headers, so a proxy may remove the conditions.
            sas: Some(server.sas(PERMISSIONS)),
            token: HeaderMap::new(),
        }
    }

    async fn at(location: AzureLocation) -> Self {
        let store = location.open().unwrap_or_else(|error| panic!("{URL_VARIABLE}: {error}"));
        let sas = match &location.sas {
            Some(sas) => Some(sas.secret().to_owned()),
            None => std::env::var(CONNECTION_STRING).ok().and_then(|text| sas_by(&text, &location.account)),
        };
        Self {
            container_url: store.container_url().parse().expect("a URL"),
            store,
            folder: Some(location.key),
            path: format!("/{}/{}", location.account, location.container),
            token: if sas.is_some() { HeaderMap::new() } else { token().await },
            sas,
        }
    }

    /// The SDK's own client, for requests that the store does not make.
    pub(crate) fn client(&self) -> BlobContainerClient {
        let mut url = self.container_url.clone();
        url.set_query(self.sas.as_deref());
        let credential = self.sas.is_none().then(credential);
        BlobContainerClient::new(url, credential, None).expect("a client")
    }

    fn query(&self) -> &str {
        self.sas.as_deref().unwrap_or(NO_SAS)
    }
}

fn sas_by(connection_string: &str, account: &str) -> Option<String> {
    let find = |wanted: &str| {
        let mut pairs = connection_string.split(';').filter_map(|pair| pair.split_once('='));
        pairs.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.to_owned())
    };
    find("SharedAccessSignature").or_else(|| Some(account_sas(account, &find("AccountKey")?, PERMISSIONS)))
}

/// The credential of the environment.
fn credential() -> Arc<dyn TokenCredential> {
    match AzureCredential::from_environment().unwrap_or_else(|error| panic!("{URL_VARIABLE}: {error}")) {
        AzureCredential::EntraId(credential) => credential,
        other => unreachable!("the environment has no {other:?}"),
    }
}

/// The header with a token.
async fn token() -> HeaderMap {
    let token = credential().get_token(&["https://storage.azure.com/.default"], None).await;
    let token = token.unwrap_or_else(|error| panic!("{URL_VARIABLE}: {error}"));
    let mut value: HeaderValue = format!("Bearer {}", token.token.secret()).parse().expect("a token is text");
    value.set_sensitive(true);
    HeaderMap::from_iter([(AUTHORIZATION, value)])
}

#[async_trait]
impl Service for Azure {
    fn is_real(&self) -> bool {
        self.folder.is_some()
    }

    fn address(&self) -> String {
        self.container_url.origin().ascii_serialization()
    }

    fn folder(&self) -> Option<&str> {
        self.folder.as_deref()
    }

    /// The client of the proxy puts the account into the path, because the proxy's address is an IP address.
    /// The service expects the account in the host's name.
    fn signer(&self) -> Signer {
        let (from, to) = (self.path.clone(), self.container_url.path().to_owned());
        let add_token = sign::with_headers(self.token.clone());
        Arc::new(move |request: &mut Request| {
            let target = request.target.replacen(&from, &to, 1);
            request.target = target.replacen(NO_SAS, "", 1);
            add_token(request);
        })
    }

    async fn store(&self) -> Arc<dyn ConditionalStore> {
        Arc::new(self.store.clone())
    }

    async fn store_by(&self, proxy: &str) -> Arc<dyn ConditionalStore> {
        let container_url = format!("{proxy}{}?{}", self.path, self.query());
        Arc::new(AzureStore::new(&container_url, AzureCredential::InUrl).expect("a store"))
    }

    fn url_by(&self, proxy: &str, key: &str) -> (String, Environment) {
        let mut location: AzureLocation = format!("{proxy}{}/key", self.path).parse().expect("a URL");
        key.clone_into(&mut location.key);
        // Displaying the location omits the SAS.
        (format!("{location}?{}", self.query()), Vec::new())
    }
}

/// One server, with a container, for all tests of the process.
pub(crate) async fn azurite() -> &'static Azurite {
    static SERVER: OnceCell<Azurite> = OnceCell::const_new();
    let start = || async {
        let server = Azurite::start(Path::new(env!("CARGO_TARGET_TMPDIR")));
        server.container("container").create(None).await.expect("a container");
        server
    };
    SERVER.get_or_init(start).await
}
