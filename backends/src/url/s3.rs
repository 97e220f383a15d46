//! `s3://` URLs.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use aws_config::environment::EnvironmentVariableRegionProvider;
use aws_config::meta::region::RegionProviderChain;
use aws_config::profile::ProfileFileRegionProvider;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Builder, Region, RequestChecksumCalculation, ResponseChecksumValidation};
use leaderelection::StoreError;
use leaderelection::store::FromEnv;
use url::form_urlencoded;

use super::compiled::CompiledHere;
use super::parts::{Parts, check_name, checked_endpoint, checked_flag, checked_region, escaped, query};
use super::{ANY, UrlError};
use crate::s3::S3Store;

/// The place of credentials.
const CREDENTIALS: &str = "AWS_ACCESS_KEY_ID or a profile";

const EXAMPLE: &str = "s3://bucket/key?region=eu-central-1 or s3://bucket/key?endpoint=http://127.0.0.1:8333";

/// An object in an S3 bucket: `s3://bucket/key?region=…&endpoint=…&path_style=true&bare_etags=true`.
///
/// Every parameter is optional. Characters of a key with a special meaning in a URL are
/// percent-encoded.
///
/// ```
/// use leaderelection_backends::url::S3Location;
///
/// let location: S3Location = "s3://bucket/locks/scheduler?endpoint=http://127.0.0.1:8333".parse()?;
/// assert_eq!(location.key, "locks/scheduler");
/// assert!(location.path_style);
/// # Ok::<(), leaderelection_backends::url::UrlError>(())
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
    /// The server of an S3-compatible store; `None` for the environment's server (`AWS_ENDPOINT_URL`), or else
    /// Amazon's.
    pub endpoint: Option<String>,
    /// `true` if the bucket is part of the path and not of the host name. The default is `true` with an
    /// [`endpoint`](Self::endpoint), and `false` without.
    pub path_style: bool,
    /// `true` if conditions carry ETags without their quotes, as Ceph's gateway expects them:
    /// [`S3Store::with_bare_etags`].
    pub bare_etags: bool,
}

impl S3Location {
    /// Names an object in a bucket, with the environment's region and endpoint.
    ///
    /// ```
    /// use leaderelection_backends::url::S3Location;
    ///
    /// let location = S3Location::new("bucket", "locks/scheduler")?.with_endpoint("http://127.0.0.1:8333")?;
    /// assert!(location.path_style);
    /// # Ok::<(), leaderelection_backends::url::UrlError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the name of the bucket is invalid, or if the key is empty.
    pub fn new(bucket: impl Into<String>, key: impl Into<String>) -> Result<Self, UrlError> {
        let (bucket, key) = (bucket.into(), key.into());
        check_name(&bucket, "bucket", "no bucket").map_err(wrong)?;
        if key.is_empty() {
            return Err(wrong("no key behind the bucket"));
        }
        Ok(Self { bucket, key, region: None, endpoint: None, path_style: false, bare_etags: false })
    }

    /// Returns the same object in this region.
    ///
    /// # Errors
    ///
    /// If the name of the region is invalid.
    pub fn with_region(mut self, region: &str) -> Result<Self, UrlError> {
        self.region = Some(checked_region(region).map_err(wrong)?);
        Ok(self)
    }

    /// Returns the same object on an S3-compatible server, with the bucket in the path.
    ///
    /// # Errors
    ///
    /// If the endpoint is not a URL of the scheme http or https, or if the endpoint has credentials, a query or a
    /// fragment.
    pub fn with_endpoint(mut self, endpoint: &str) -> Result<Self, UrlError> {
        self.endpoint = Some(checked_endpoint(endpoint, CREDENTIALS).map_err(wrong)?);
        self.path_style = true;
        Ok(self)
    }

    /// Returns the same object with the bucket in the path or in the host name.
    #[must_use]
    pub fn with_path_style(mut self, path_style: bool) -> Self {
        self.path_style = path_style;
        self
    }

    /// Returns the same object in a store that expects ETags with or without their quotes.
    #[must_use]
    pub fn with_bare_etags(mut self, bare_etags: bool) -> Self {
        self.bare_etags = bare_etags;
        self
    }

    /// Opens the store in this bucket, over [`client`](Self::client).
    pub async fn open(&self) -> S3Store {
        S3Store::new(self.client().await, &self.bucket).with_bare_etags(self.bare_etags)
    }

    /// Creates a client with the credentials that the SDK's default chain finds: environment, profile, web
    /// identity, container, instance.
    ///
    /// This function never fails: the first request reports missing settings. With an
    /// [`endpoint`](Self::endpoint), the region is `us-east-1` if no other region is configured, and checksums are
    /// sent and checked only where the protocol requires them.
    pub async fn client(&self) -> Client {
        self.made_client().await
    }

    fn made_client(&self) -> CompiledHere<'_, Client> {
        Box::pin(async move {
            let mut loader = aws_config::defaults(BehaviorVersion::latest());
            if let Some(endpoint) = &self.endpoint {
                // The default chain is not used here, because it would look for an instance metadata service.
                let region = RegionProviderChain::first_try(EnvironmentVariableRegionProvider::new())
                    .or_else(ProfileFileRegionProvider::new())
                    .or_else("us-east-1");
                loader = loader
                    .endpoint_url(endpoint)
                    .region(region)
                    .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
                    .response_checksum_validation(ResponseChecksumValidation::WhenRequired);
            }
            if let Some(region) = &self.region {
                loader = loader.region(Region::new(region.clone()));
            }
            Client::from_conf(Builder::from(&loader.load().await).force_path_style(self.path_style).build())
        })
    }
}

/// Opens the store with the credentials, the region and the endpoint that [`S3Location::client`] finds.
#[async_trait]
impl FromEnv for S3Store {
    async fn from_env(bucket: &str) -> Result<Self, StoreError> {
        Ok(S3Location::new(bucket, ANY).map_err(UrlError::fatal)?.open().await)
    }
}

impl FromStr for S3Location {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let Parts { authority: bucket, path: key, query } = Parts::parse(text, "s3", EXAMPLE)?;
        if bucket.contains(':') {
            return Err(wrong("a port belongs in the endpoint, not behind the bucket"));
        }
        let (mut location, mut path_style) = (Self::new(bucket, key)?, None);
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*name {
                "region" => location = location.with_region(&value)?,
                "endpoint" => location = location.with_endpoint(&value)?,
                "path_style" => path_style = Some(checked_flag("path_style", &value).map_err(wrong)?),
                "bare_etags" => location.bare_etags = checked_flag("bare_etags", &value).map_err(wrong)?,
                _ => return Err(wrong("a parameter other than region, endpoint, path_style and bare_etags")),
            }
        }
        // The endpoint has changed the style, whichever of the two came first.
        location.path_style = path_style.unwrap_or(location.path_style);
        Ok(location)
    }
}

impl fmt::Display for S3Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path_style = (self.path_style != self.endpoint.is_some()).then(|| self.path_style.to_string());
        let query = query([
            ("region", self.region.as_deref()),
            ("endpoint", self.endpoint.as_deref()),
            ("path_style", path_style.as_deref()),
            ("bare_etags", self.bare_etags.then_some("true")),
        ]);
        write!(f, "s3://{}/{}{query}", self.bucket, escaped(&self.key))
    }
}

fn wrong(problem: impl Into<String>) -> UrlError {
    UrlError { problem: problem.into(), example: EXAMPLE }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<S3Location, String> {
        text.parse().map_err(|error: UrlError| error.to_string())
    }

    #[test]
    fn reads_every_part() {
        let location = parse(
            "s3://my.bucket/a%20b/c%23d?region=eu-west-1&endpoint=https%3A%2F%2Fs3.test&path_style=false&bare_etags=true",
        );
        let expected = S3Location {
            bucket: "my.bucket".to_owned(),
            key: "a b/c#d".to_owned(),
            region: Some("eu-west-1".to_owned()),
            endpoint: Some("https://s3.test".to_owned()),
            path_style: false,
            bare_etags: true,
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
                "s3://b/a%20b?region=eu-west-1&endpoint=http://h/a%2526b%252B%2Bc&path_style=false&bare_etags=true",
                "s3://b/a%20b?region=eu-west-1&endpoint=http://h/a%2526b%252B%2Bc&path_style=false&bare_etags=true",
            ),
        ] {
            let location: S3Location = text.parse().unwrap();
            assert_eq!(location.to_string(), shown);
            assert_eq!(parse(shown), Ok(location));
        }
    }

    #[test]
    fn path_style_follows_the_endpoint() {
        assert!(!parse("s3://bucket/key").unwrap().path_style);
        assert!(parse("s3://bucket/key?endpoint=http://127.0.0.1:1").unwrap().path_style);
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
            ("s3://my secret/key", "not the name of one"),
            ("s3://bucket/key?region=", "the region"),
            ("s3://bucket/key?region=eu%20secret", "the region"),
            ("s3://bucket/key?region=-secret", "the region"),
            ("s3://bucket/key?endpoint=", "the endpoint is not a URL"),
            ("s3://bucket/key?endpoint=http://", "the endpoint is not a URL"),
            ("s3://bucket/key?endpoint=http://host?secret=1", "neither a query"),
            ("s3://bucket/key?endpoint=http://host/%23secret", "neither a query"),
            ("s3://bucket/key#secret", "%23"),
            ("s3://bucket/%FF", "UTF-8"),
            ("s3://bucket/key?secret=1", "a parameter other than"),
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
