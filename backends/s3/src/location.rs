//! `s3://` URLs.

use std::sync::Arc;

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_config::environment::EnvironmentVariableRegionProvider;
use aws_config::meta::region::RegionProviderChain;
use aws_config::profile::ProfileFileRegionProvider;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::{BehaviorVersion, Builder, Region, RequestChecksumCalculation, ResponseChecksumValidation};
use aws_types::service_config::ServiceConfigKey;
use leaderelection::StoreError;
use leaderelection::implement::{ConditionalStore, FromEnv};
use leaderelection_store_support::ca::Authorities;
use leaderelection_store_support::url::{
    ANY, Parameter, Place, Scheme, Table, UrlError, Value, check_bucket, checked_ca, checked_endpoint, checked_region,
    wrong,
};
use leaderelection_store_support::{CompiledHere, url_of_table};

use crate::S3Store;
use crate::chain::{Chain, is_on_ec2};
use crate::client::Made;
use crate::directory::is_directory;
use crate::http_client;

const CA_BUNDLE: &str = "AWS_CA_BUNDLE";

/// The place of credentials.
const CREDENTIALS: &str = "AWS_ACCESS_KEY_ID or a profile";

/// An object in an S3 bucket: `s3://bucket/key?region=…&endpoint=…&path_style=true&bare_etags=true&ca=…`.
///
/// Every parameter is optional. Characters of a key with a special meaning in a URL are
/// percent-encoded.
///
/// ```
/// use leaderelection_s3::S3Location;
///
/// let location: S3Location = "s3://bucket/locks/scheduler?endpoint=http://127.0.0.1:8333".parse()?;
/// assert_eq!(location.key, "locks/scheduler");
/// assert_eq!(location.endpoint.as_deref(), Some("http://127.0.0.1:8333"));
/// # Ok::<(), leaderelection_s3::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct S3Location {
    /// The bucket.
    pub bucket: String,
    /// The object's key.
    pub key: String,
    /// The bucket's region; `None` for the environment's region.
    pub region: Option<String>,
    /// The server of an S3-compatible store; `None` for the environment's server (`AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`,
    /// or `endpoint_url` of a profile), or else Amazon's.
    pub endpoint: Option<String>,
    /// `true` if the bucket is part of the path and not of the host name. `None` is `true` with an endpoint, wherever it is
    /// named, and `false` for Amazon's.
    pub path_style: Option<bool>,
    /// `true` if conditions carry ETags without their quotes, as Ceph's gateway expects them:
    /// [`S3Store::with_bare_etags`].
    pub bare_etags: bool,
    /// The path of a file with certificates of authorities in PEM, which are trusted beside those of the system; `None` for the
    /// environment's (`AWS_CA_BUNDLE`, or `ca_bundle` of a profile).
    pub ca: Option<String>,
}

impl S3Location {
    /// Names an object in a bucket, with the environment's region and endpoint.
    ///
    /// ```
    /// use leaderelection_s3::S3Location;
    ///
    /// let location = S3Location::new("bucket", "locks/scheduler")?.with("endpoint", "http://127.0.0.1:8333/")?;
    /// assert_eq!(location.to_string(), "s3://bucket/locks/scheduler?endpoint=http://127.0.0.1:8333");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the name of the bucket is invalid, or if the key is empty or has a [character that nobody
    /// sees](leaderelection::names).
    pub fn new(bucket: impl Into<String>, key: impl Into<String>) -> Result<Self, UrlError> {
        Self::made("s3", &bucket.into(), key.into()).map_err(wrong::<Self>)
    }

    /// Returns `true` if this is a directory bucket, which holds the storage class S3 Express One Zone.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        is_directory(&self.bucket)
    }

    /// Opens the store in this bucket, over [`client`](Self::client).
    ///
    /// # Errors
    ///
    /// The same as for [`client`](Self::client).
    pub async fn open(&self) -> Result<S3Store, StoreError> {
        let (client, made) = self.made_client().await?;
        Ok(S3Store::made(client, &self.bucket, made).with_bare_etags(self.bare_etags))
    }

    /// Creates a client with the credentials that the SDK's default chain finds: environment, profile, web
    /// identity, container, instance. Unlike the SDK, each load reads the files of profiles anew. The client's retries are the
    /// SDK's standard ones, whatever `AWS_RETRY_MODE` and `AWS_MAX_ATTEMPTS` say.
    ///
    /// The first request reports missing settings. With an endpoint, of this location or of the environment, the region is
    /// `us-east-1` if no other region is configured, and checksums are sent and checked only where the protocol requires them.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`](leaderelection::StoreErrorKind::Fatal) if the file with the certificates of authorities cannot
    /// be read, or if there are none in it.
    pub async fn client(&self) -> Result<Client, StoreError> {
        self.made_client().await.map(|(client, _)| client)
    }

    fn made_client(&self) -> CompiledHere<'_, Result<(Client, Made), StoreError>> {
        Box::pin(async move {
            // Without a client, the SDK would panic as soon as it looks for the machine's metadata service.
            http_client(None)?;
            let settings = settings().await;
            let endpoint = self.endpoint.clone().or_else(|| configured_endpoint(&settings));
            let of_profile = || {
                let bundle = of_service(&settings, CA_BUNDLE, "ca_bundle")?;
                Some(Authorities::new(bundle, "AWS_CA_BUNDLE, or ca_bundle of a profile,"))
            };
            let authorities = self.ca.as_deref().map(Authorities::of_url).or_else(of_profile);
            // The SDK would read the retries of the environment, and panic at a mode that it does not know. A store has none.
            let retries = RetryConfig::standard();
            let mut loader = aws_config::defaults(BehaviorVersion::latest()).retry_config(retries).no_credentials();
            let http_client = http_client(authorities.as_ref())?;
            let has_own_client = http_client.is_some();
            if let Some(client) = http_client {
                loader = loader.http_client(client);
            }
            if let Some(endpoint) = &endpoint {
                loader = loader
                    // Without the slash, the SDK would join the last part of the path and the name of the bucket.
                    .endpoint_url(format!("{endpoint}/"))
                    .region(local_region().or_else("us-east-1"))
                    .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
                    .response_checksum_validation(ResponseChecksumValidation::WhenRequired);
            }
            if let Some(region) = &self.region {
                loader = loader.region(Region::new(region.clone()));
            }
            let path_style = self.path_style.unwrap_or(endpoint.is_some());
            let settings = loader.load().await;
            let region = (settings.region().is_none() && is_on_ec2()).then(Arc::default);
            let config = Builder::from(&settings).credentials_provider(Chain::of(&settings, authorities.clone()));
            Ok((
                Client::from_conf(config.force_path_style(path_style).build()),
                Made { authorities, has_own_client, region },
            ))
        })
    }
}

/// The region of this machine's settings. The SDK's default chain would look for an instance metadata service, too.
fn local_region() -> RegionProviderChain {
    RegionProviderChain::first_try(EnvironmentVariableRegionProvider::new()).or_else(ProfileFileRegionProvider::new())
}

/// The settings of the environment and of the profile's files.
async fn settings() -> SdkConfig {
    let mut loader = aws_config::defaults(BehaviorVersion::latest()).region(local_region()).no_credentials();
    if let Ok(Some(client)) = http_client(None) {
        loader = loader.http_client(client);
    }
    // The SDK panics on modes that others know.
    loader.retry_config(RetryConfig::disabled()).load().await
}

/// A setting that may be one for S3 alone.
fn of_service(settings: &SdkConfig, variable: &str, of_profile: &str) -> Option<String> {
    let key = ServiceConfigKey::builder().service_id("S3").env(variable).profile(of_profile).build().ok()?;
    settings.service_config()?.load_config(key).filter(|value| !value.is_empty())
}

/// The server that the environment or a profile names, so that it is asked in the same way as one in the URL.
fn configured_endpoint(settings: &SdkConfig) -> Option<String> {
    let of_service = of_service(settings, "AWS_ENDPOINT_URL", "endpoint_url");
    let endpoint = of_service.or_else(|| settings.endpoint_url().map(str::to_owned)).filter(|url| !url.is_empty())?;
    // The SDK refuses what is no URL, at the first request.
    Some(checked_endpoint(&endpoint, CREDENTIALS).unwrap_or(endpoint))
}

/// Opens the store with the credentials, the region and the endpoint that [`S3Location::client`] finds.
#[async_trait]
impl FromEnv for S3Store {
    async fn from_env(bucket: &str) -> Result<Self, StoreError> {
        S3Location::new(bucket, ANY).map_err(UrlError::fatal)?.open().await
    }
}

impl Table for S3Location {
    const EXAMPLE: &'static str =
        "s3://bucket/key?region=eu-central-1 or s3://bucket/key?endpoint=http://127.0.0.1:8333";

    const SCHEMES: &'static [Scheme<Self>] = &[Scheme {
        name: "s3",
        parameters: &[
            Parameter {
                name: "region",
                help: "the bucket's region, such as eu-central-1",
                value: Value::Text(checked_region, |location| &mut location.region),
            },
            Parameter {
                name: "endpoint",
                help: "the URL of an S3-compatible server, such as http://127.0.0.1:8333",
                value: Value::Text(|url| checked_endpoint(url, CREDENTIALS), |location| &mut location.endpoint),
            },
            Parameter {
                name: "path_style",
                help: "true if the bucket is part of the path and not of the host name",
                value: Value::Choice(|location| &mut location.path_style),
            },
            Parameter {
                name: "bare_etags",
                help: "true for Ceph's gateway, which compares ETags without their quotes",
                value: Value::Flag(|location| &mut location.bare_etags),
            },
            Parameter {
                name: "ca",
                help: "a file with the certificates of authorities",
                value: Value::Text(checked_ca, |location| &mut location.ca),
            },
        ],
        refused: &[],
    }];

    fn made(_scheme: &str, authority: &str, path: String) -> Result<Self, String> {
        check_bucket(authority, &path, "key")?;
        let (bucket, key) = (authority.to_owned(), path);
        Ok(Self { bucket, key, region: None, endpoint: None, path_style: None, bare_etags: false, ca: None })
    }

    fn authority(&self) -> &str {
        &self.bucket
    }

    fn normalized(mut self) -> Self {
        self.path_style = self.path_style.filter(|path_style| !path_style || self.endpoint.is_none());
        self
    }
}

impl Place for S3Location {
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
        Box::pin(async move { self.open().await?.endpoint().await.map(Some) })
    }
}

url_of_table!(S3Location);

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<S3Location, String> {
        text.parse().map_err(|error: UrlError| error.to_string())
    }

    #[test]
    fn reads_every_part() {
        let location = parse(
            "s3://my.bucket/a%20b/c%23d?region=eu-west-1&endpoint=https%3A%2F%2Fs3.test&path_style=false&bare_etags=true&ca=/etc/ca.pem",
        );
        let expected = S3Location {
            bucket: "my.bucket".to_owned(),
            key: "a b/c#d".to_owned(),
            region: Some("eu-west-1".to_owned()),
            endpoint: Some("https://s3.test".to_owned()),
            path_style: Some(false),
            bare_etags: true,
            ca: Some("/etc/ca.pem".to_owned()),
        };
        assert_eq!(location, Ok(expected));
    }

    #[test]
    fn people_can_read_the_endpoint_of_a_url_that_is_shown() {
        for (text, shown) in [
            (
                "s3://bucket/key?endpoint=http%3A%2F%2F127.0.0.1%3A8333",
                "s3://bucket/key?endpoint=http://127.0.0.1:8333",
            ),
            (
                "s3://b/a%20b?region=eu-west-1&endpoint=http://h/a%26b%2Bc&path_style=false&bare_etags=true",
                "s3://b/a%20b?region=eu-west-1&endpoint=http://h/a%26b%2Bc&path_style=false&bare_etags=true",
            ),
        ] {
            let location: S3Location = text.parse().unwrap();
            assert_eq!(location.to_string(), shown);
            assert_eq!(parse(shown), Ok(location));
        }
    }

    #[tokio::test]
    async fn path_style_follows_the_endpoint() {
        for (parameters, endpoint) in
            [("", "http://localhost:1/bucket"), ("&path_style=false", "http://bucket.localhost:1")]
        {
            let location = parse(&format!("s3://bucket/key?endpoint=http://localhost:1{parameters}")).unwrap();
            assert_eq!(location.open().await.unwrap().endpoint().await.unwrap(), endpoint);
        }
    }

    #[test]
    fn a_wrong_url_is_shown_a_right_one_and_never_repeated() {
        for (text, problem) in [
            ("bucket/secret", "does not begin with s3://"),
            ("gs://bucket/secret", "does not begin with s3://"),
            ("s3:///secret", "no bucket"),
            ("s3://bucket", "no key"),
            ("s3://bucket/", "no key"),
            ("s3://user:secret@bucket/key", "credentials"),
            ("s3://bucket:80/secret", "port"),
            ("s3://arn:aws:s3:eu-west-1:123456789012:accesspoint/secret/key", "write the access point's alias"),
            ("s3://bucket/key?region=a&region=secret", "twice"),
            ("s3://bucket/key?endpoint=http://host/%2541", "to escape"),
            ("s3://my secret/key", "the name of the bucket is invalid"),
            ("s3://bucket/key?region=", "the region"),
            ("s3://bucket/key?region=eu%20secret", "the region"),
            ("s3://bucket/key?region=-secret", "the region"),
            ("s3://bucket/key?endpoint=", "the endpoint is not a URL"),
            ("s3://bucket/key?endpoint=http://", "the endpoint is not a URL"),
            ("s3://bucket/key?endpoint=http://host?secret=1", "neither a query"),
            ("s3://bucket/key?endpoint=http://host/%23secret", "neither a query"),
            ("s3://bucket/key#secret", "%23"),
            ("s3://bucket/%FF", "UTF-8"),
            (
                "s3://bucket/key?secret=1",
                "number 1 after the ?; s3:// takes region, endpoint, path_style, bare_etags, ca;",
            ),
            ("s3://bucket/key?endpont=http://secret", "unknown parameter endpont (did you mean endpoint?)"),
            ("s3://bucket/key?path_style=secret", "path_style"),
            ("s3://bucket/key?endpoint=secret", "endpoint"),
            ("s3://bucket/key?endpoint=ftp://secret", "endpoint"),
            ("s3://bucket/key?endpoint=http://user:secret@host", "endpoint"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
            assert!(error.contains("s3://bucket/key?region="), "{text}: {error}");
            assert!(!error.contains("secret"), "{text}: {error}");
        }
    }
}
