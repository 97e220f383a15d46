//! Stores that a program reaches by the crates of others, for tests of the adapters in any process.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use leaderelection::implement::ConditionalStore;
use leaderelection_backends::object_store::{KeptCredentials, ObjectStoreAdapter};
use leaderelection_backends::opendal::{OpendalAdapter, OpendalObjects};
use leaderelection_sequenced::SequencedStore;
use object_store::aws::AmazonS3Builder;
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::{ObjectStore, RetryConfig};
use opendal::layers::RetryLayer;
use opendal::services::{Azblob, Oss, S3};
use opendal::{HttpTransporter, Operator};
use opendal_http_transport_reqwest::ReqwestTransport;
use serde::{Deserialize, Serialize};

/// A bucket or container of a server that the tests have started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Place {
    /// A bucket.
    S3 {
        /// The address, such as `http://127.0.0.1:31234`.
        endpoint: String,
        /// The bucket.
        bucket: String,
        /// The name of the key.
        access_key: String,
        /// The key.
        secret_key: String,
    },
    /// A bucket whose keys come from the environment.
    Environment {
        /// The address, such as `http://127.0.0.1:31234`.
        endpoint: String,
        /// The bucket.
        bucket: String,
    },
    /// A container.
    Azure {
        /// The address, such as `http://127.0.0.1:31234`.
        endpoint: String,
        /// The account.
        account: String,
        /// The container.
        container: String,
        /// The account's key, or a SAS, whose signature covers no address: a proxy needs one.
        key_or_sas: String,
    },
    /// The bucket of a server that can only create.
    Oss {
        /// The address, such as `http://127.0.0.1:31234`.
        endpoint: String,
        /// The number of newest objects that a write keeps.
        keep: u64,
    },
}

impl Place {
    /// The address of the server.
    pub fn endpoint(&mut self) -> &mut String {
        let (Self::S3 { endpoint, .. }
        | Self::Environment { endpoint, .. }
        | Self::Azure { endpoint, .. }
        | Self::Oss { endpoint, .. }) = self;
        endpoint
    }
}

/// The crate whose store is adapted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum By {
    /// `object_store`.
    ObjectStore,
    /// `opendal`.
    Opendal,
}

/// A store of another crate, as a URL names one of ours. Its text is JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Adapted {
    /// The crate.
    pub by: By,
    /// The place.
    pub place: Place,
    /// Leaves the retries of that crate as its user finds them.
    pub retries: bool,
    /// The key of the object.
    pub key: String,
}

impl Adapted {
    /// Creates the store on a client of its own.
    ///
    /// # Panics
    ///
    /// If the settings are invalid.
    #[must_use]
    pub fn open(&self) -> Arc<dyn ConditionalStore> {
        let (place, retries) = (self.place.clone(), self.retries);
        match (self.by, &self.place) {
            (By::Opendal, Place::Oss { keep, .. }) => {
                let objects = OpendalObjects::new(opendal(&self.place, self.retries));
                let objects = objects.expect("the service can create on a condition").with_renewal(|| Ok(transport()));
                Arc::new(SequencedStore::new(objects).keep(*keep))
            }
            (By::ObjectStore, Place::Environment { endpoint, bucket }) => {
                let builder = of_environment(endpoint, bucket);
                let first = builder.clone().build().expect("settings of a store");
                let builder = builder.with_credentials(KeptCredentials::of(Arc::clone(first.credentials())));
                let make = move || Ok(Arc::new(builder.clone().build()?) as Arc<dyn ObjectStore>);
                let store = ObjectStoreAdapter::new(make().expect("settings of a store"));
                Arc::new(store.with_renewal(make))
            }
            (By::ObjectStore, _) => {
                let store = ObjectStoreAdapter::new(object_store(&place, retries));
                Arc::new(store.with_renewal(move || Ok(object_store(&place, retries))))
            }
            (By::Opendal, _) => {
                let adapter = OpendalAdapter::new(opendal(&self.place, self.retries));
                let adapter = adapter.expect("the service can create and replace on a condition");
                Arc::new(adapter.with_renewal(|| Ok(transport())))
            }
        }
    }
}

impl fmt::Display for Adapted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Adapted {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
    }
}

/// Returns a store of the crate `object_store`.
///
/// # Panics
///
/// If the settings are invalid, or if that crate has no such store.
#[must_use]
pub fn object_store(place: &Place, retries: bool) -> Arc<dyn ObjectStore> {
    let usual = RetryConfig::default();
    let retry = if retries { usual } else { RetryConfig { max_retries: 0, ..usual } };
    match place {
        Place::S3 { endpoint, bucket, access_key, secret_key } => Arc::new(
            AmazonS3Builder::new()
                .with_endpoint(endpoint)
                .with_bucket_name(bucket)
                .with_region("us-east-1")
                .with_access_key_id(access_key)
                .with_secret_access_key(secret_key)
                .with_allow_http(true)
                .with_retry(retry)
                .build()
                .expect("settings of a store"),
        ),
        Place::Azure { endpoint, account, container, key_or_sas } => Arc::new(
            MicrosoftAzureBuilder::new()
                .with_endpoint(format!("{endpoint}/{account}"))
                .with_account(account)
                .with_container_name(container)
                .with_config(azure_key(key_or_sas), key_or_sas)
                .with_allow_http(true)
                .with_retry(retry)
                .build()
                .expect("settings of a store"),
        ),
        Place::Environment { .. } | Place::Oss { .. } => panic!("object_store can elect nobody at {place:?}"),
    }
}

/// Settings without retries, whose keys come from the environment.
fn of_environment(endpoint: &str, bucket: &str) -> AmazonS3Builder {
    AmazonS3Builder::from_env()
        .with_endpoint(endpoint)
        .with_bucket_name(bucket)
        .with_region("us-east-1")
        .with_allow_http(true)
        .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
}

fn azure_key(key_or_sas: &str) -> AzureConfigKey {
    if key_or_sas.contains("sig=") { AzureConfigKey::SasKey } else { AzureConfigKey::AccessKey }
}

/// Returns an operator of the crate `opendal`, with its retry layer or without.
///
/// # Panics
///
/// If the settings are invalid.
#[must_use]
pub fn opendal(place: &Place, retries: bool) -> Operator {
    opendal::install_default();
    let operator = match place {
        Place::S3 { endpoint, bucket, access_key, secret_key } => Operator::new(
            S3::default()
                .endpoint(endpoint)
                .bucket(bucket)
                .region("us-east-1")
                .access_key_id(access_key)
                .secret_access_key(secret_key)
                .disable_config_load(),
        ),
        Place::Environment { endpoint, bucket } => {
            Operator::new(S3::default().endpoint(endpoint).bucket(bucket).region("us-east-1"))
        }
        Place::Azure { endpoint, account, container, key_or_sas } => {
            let service =
                Azblob::default().endpoint(&format!("{endpoint}/{account}")).account_name(account).container(container);
            Operator::new(match azure_key(key_or_sas) {
                AzureConfigKey::SasKey => service.sas_token(key_or_sas),
                _ => service.account_key(key_or_sas),
            })
        }
        Place::Oss { endpoint, .. } => Operator::new(
            Oss::default()
                .endpoint(endpoint)
                .addressing_style("path")
                .bucket("bucket")
                .access_key_id("key")
                .access_key_secret("secret"),
        ),
    };
    let operator = operator.expect("settings of a service");
    // The connections of the default client are shared by the whole process, and end with the runtime of the test that
    // opened them.
    let context = operator.context().with_http_transport(transport());
    let operator = operator.with_context(context);
    if retries { operator.layer(RetryLayer::new()) } else { operator }
}

fn transport() -> HttpTransporter {
    HttpTransporter::new(ReqwestTransport::new(reqwest::Client::new()))
}
