//! SeaweedFS, or the bucket that `LEADERELECTION_TEST_S3_URL` names.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_config::BehaviorVersion;
use aws_credential_types::provider::ProvideCredentials as _;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::{RequestChecksumCalculation, ResponseChecksumValidation};
use aws_sdk_s3::presigning::PresigningConfig;
use leaderelection::implement::ConditionalStore;
use leaderelection_backends::s3::S3Store;
use leaderelection_backends::url::S3Location;
use leaderelection_integration_tests::proxy::sign::{self, Signer};
use leaderelection_integration_tests::servers::express::{self, Express};
use leaderelection_integration_tests::servers::seaweedfs::{BUCKET, SeaweedFs};
use tokio::sync::OnceCell;
use url::Url;

use super::{Environment, Service};

pub(crate) const URL_VARIABLE: &str = "LEADERELECTION_TEST_S3_URL";

pub(crate) struct S3 {
    pub(crate) client: Client,
    pub(crate) bucket: String,
    pub(crate) folder: Option<String>,
    address: String,
    signer: Signer,
    environment: Environment,
    /// A gateway that ends with this value.
    _gateway: Option<Express>,
}

impl S3 {
    pub(crate) async fn new() -> Self {
        match std::env::var(URL_VARIABLE) {
            Ok(url) => Self::at(url.parse().unwrap_or_else(|error| panic!("{URL_VARIABLE}: {error}"))).await,
            Err(_) => Self::on(seaweedfs().await),
        }
    }

    pub(crate) fn on(server: &SeaweedFs) -> Self {
        Self {
            client: server.client(),
            bucket: "bucket".to_owned(),
            folder: None,
            address: server.url(),
            signer: server.signer(),
            environment: server.environment().map(|(name, value)| (name, value.to_owned())).into(),
            _gateway: None,
        }
    }

    /// A directory bucket, whose sessions last for `lifetime`.
    pub(crate) async fn express(lifetime: Duration) -> Self {
        let gateway = Express::start(seaweedfs().await, lifetime).await;
        Self {
            client: gateway.client(),
            bucket: express::BUCKET.to_owned(),
            folder: None,
            address: gateway.url(),
            signer: sign::unsigned(),
            environment: gateway.environment().map(|(name, value)| (name, value.to_owned())).into(),
            _gateway: Some(gateway),
        }
    }

    async fn at(location: S3Location) -> Self {
        let client = location.client().await.expect("a client");
        let region = client.config().region().unwrap_or_else(|| panic!("{URL_VARIABLE}: add ?region="));
        let credentials = aws_config::load_defaults(BehaviorVersion::latest()).await.credentials_provider();
        let credentials = credentials.expect("a chain of providers").provide_credentials().await;
        let credentials = credentials.unwrap_or_else(|error| panic!("{URL_VARIABLE}: no credentials: {error}"));
        Self {
            address: address(&client, &location.bucket).await,
            signer: sign::s3(credentials, region.to_string()),
            client,
            bucket: location.bucket,
            folder: Some(location.key),
            environment: Vec::new(),
            _gateway: None,
        }
    }
}

/// The address to which the SDK would send a request whose path begins with the bucket.
async fn address(client: &Client, bucket: &str) -> String {
    let client = Client::from_conf(client.config().to_builder().force_path_style(true).build());
    let expiry = PresigningConfig::expires_in(Duration::from_secs(1)).expect("a possible time");
    let request = client.get_object().bucket(bucket).key("key").presigned(expiry).await.expect("a URL");
    let url: Url = request.uri().parse().expect("a URL");
    url.origin().ascii_serialization()
}

#[async_trait]
impl Service for S3 {
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
        Arc::new(S3Store::new(self.client.clone(), &self.bucket))
    }

    async fn store_by(&self, proxy: &str) -> Arc<dyn ConditionalStore> {
        let config = self
            .client
            .config()
            .to_builder()
            .endpoint_url(proxy)
            .force_path_style(true)
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .response_checksum_validation(ResponseChecksumValidation::WhenRequired);
        Arc::new(S3Store::new(Client::from_conf(config.build()), &self.bucket))
    }

    fn url_by(&self, proxy: &str, key: &str) -> (String, Environment) {
        let mut location: S3Location = format!("s3://{}/key?endpoint={proxy}", self.bucket).parse().expect("a URL");
        key.clone_into(&mut location.key);
        (location.to_string(), self.environment.clone())
    }
}

/// One server, with a bucket, for all tests of the process.
pub(crate) async fn seaweedfs() -> &'static SeaweedFs {
    static SERVER: OnceCell<SeaweedFs> = OnceCell::const_new();
    let start = || async {
        let server = SeaweedFs::start(Path::new(env!("CARGO_TARGET_TMPDIR")));
        server.create_bucket(BUCKET).await;
        server
    };
    SERVER.get_or_init(start).await
}
