//! A fake of Google Cloud Storage, or the bucket that `LEADERELECTION_TEST_GCS_URL` names.

use std::sync::Arc;

use async_trait::async_trait;
use google_cloud_auth::credentials::{self, CacheableResource, anonymous};
use google_cloud_storage::client::{Storage, StorageControl};
use leaderelection::implement::ConditionalStore;
use leaderelection_backends::gcs::GcsStore;
use leaderelection_backends::url::GcsLocation;
use leaderelection_integration_tests::proxy::sign::{self, Signer};
use leaderelection_integration_tests::servers::fake_gcs::{BUCKET, FakeGcs, Options};

use super::{Environment, Service};

pub(crate) const URL_VARIABLE: &str = "LEADERELECTION_TEST_GCS_URL";

pub(crate) const EMULATOR: &str = "STORAGE_EMULATOR_HOST";

const GOOGLE: &str = "https://storage.googleapis.com";

pub(crate) struct Gcs {
    pub(crate) store: GcsStore,
    pub(crate) folder: Option<String>,
    address: String,
    signer: Signer,
    /// The fake of one test, because the fake runs on the test's own runtime.
    _fake: Option<Arc<FakeGcs>>,
}

impl Gcs {
    pub(crate) async fn new() -> Self {
        match std::env::var(URL_VARIABLE) {
            Ok(url) => Self::at(url.parse().unwrap_or_else(|error| panic!("{URL_VARIABLE}: {error}"))).await,
            Err(_) => Self::on(Arc::new(FakeGcs::start(Options::default()).await)).await,
        }
    }

    pub(crate) async fn on(fake: Arc<FakeGcs>) -> Self {
        let control = fake.control();
        Self {
            store: GcsStore::new(fake.client().await, BUCKET).with_control(move || control().build()),
            folder: None,
            address: fake.url(),
            signer: sign::unsigned(),
            _fake: Some(fake),
        }
    }

    async fn at(location: GcsLocation) -> Self {
        let store = location.open().await.unwrap_or_else(|error| panic!("{URL_VARIABLE}: {error}"));
        let emulator = std::env::var(EMULATOR).ok().filter(|host| !host.is_empty());
        let signer = if emulator.is_some() { sign::unsigned() } else { signer().await };
        let address = match emulator {
            Some(host) if host.contains("://") => host,
            Some(host) => format!("http://{host}"),
            None => GOOGLE.to_owned(),
        };
        Self { store, folder: Some(location.key), address, signer, _fake: None }
    }

    /// The SDK's own client, for requests that the store does not make.
    pub(crate) async fn client(&self) -> Storage {
        let builder = match self.address.as_str() {
            GOOGLE => Storage::builder(),
            address => Storage::builder().with_endpoint(address).with_credentials(anonymous::Builder::new().build()),
        };
        builder.build().await.expect("a client")
    }
}

/// A signer with a token, because the SDK sends no token to a presumed emulator.
async fn signer() -> Signer {
    let credentials = credentials::Builder::default().build();
    let credentials = credentials.unwrap_or_else(|error| panic!("{URL_VARIABLE}: {error}"));
    let headers = credentials.headers(hyper::http::Extensions::new()).await;
    match headers.unwrap_or_else(|error| panic!("{URL_VARIABLE}: {error}")) {
        CacheableResource::New { data, .. } => sign::with_headers(data),
        CacheableResource::NotModified => unreachable!("nothing was known before"),
    }
}

#[async_trait]
impl Service for Gcs {
    fn is_real(&self) -> bool {
        self.folder.is_some()
    }

    fn address(&self) -> String {
        self.address.clone()
    }

    fn folder(&self) -> Option<&str> {
        self.folder.as_deref()
    }

    fn signer(&self) -> Signer {
        Arc::clone(&self.signer)
    }

    async fn store(&self) -> Arc<dyn ConditionalStore> {
        Arc::new(self.store.clone())
    }

    async fn store_by(&self, proxy: &str) -> Arc<dyn ConditionalStore> {
        let url = proxy.to_owned();
        let make = move || {
            let client = Storage::builder().with_endpoint(&url);
            client.with_credentials(anonymous::Builder::new().build()).build()
        };
        let store = GcsStore::new(make().await.expect("a client"), self.store.bucket()).with_renewal(make);
        if self.address == GOOGLE {
            return Arc::new(store);
        }
        let address = self.address.clone();
        Arc::new(store.with_control(move || {
            let credentials = anonymous::Builder::new().build();
            StorageControl::builder().with_endpoint(&address).with_credentials(credentials).build()
        }))
    }

    fn url_by(&self, proxy: &str, key: &str) -> (String, Environment) {
        let mut location: GcsLocation = format!("gs://{}/key", self.store.bucket()).parse().expect("a URL");
        key.clone_into(&mut location.key);
        (location.to_string(), vec![(EMULATOR, proxy.to_owned())])
    }

    fn is_all_http(&self) -> bool {
        false
    }
}
