//! `oss://`, `cos://` and `tos://` URLs.

use std::sync::Arc;

use leaderelection::implement::ConditionalStore;
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_sequenced::{DEFAULT_KEEP, SequencedStore};
use leaderelection_store_support::ca::Authorities;
use leaderelection_store_support::request::{Words, failed};
use leaderelection_store_support::tls::check_provider;
use leaderelection_store_support::url::{
    Parameter, Place, Scheme, Table, Value, check_bucket, checked_ca, checked_endpoint, checked_region,
};
use leaderelection_store_support::{CompiledHere, url_of_table, variable};
use opendal::services::{Cos, Oss, Tos};
use opendal::{Error, ErrorKind, HttpTransporter, Operator};
use opendal_http_transport_reqwest::ReqwestTransport;
use reqwest::Client;

use crate::{OpendalAdapter, OpendalObjects};

/// A service that the crate `opendal` reaches, and that a URL can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpendalService {
    /// Alibaba OSS, which can only create. Credentials: `ALIBABA_CLOUD_ACCESS_KEY_ID` and
    /// `ALIBABA_CLOUD_ACCESS_KEY_SECRET`, or a role.
    Oss,
    /// Tencent COS, which can only create. Credentials: `TENCENTCLOUD_SECRET_ID` and `TENCENTCLOUD_SECRET_KEY`, or a
    /// role.
    Cos,
    /// Volcengine TOS, which can create and replace. Credentials: `TOS_ACCESS_KEY_ID` and `TOS_SECRET_ACCESS_KEY`.
    Tos,
}

/// An object in a service of the crate `opendal`: `oss://bucket/key?endpoint=…&path_style=true&keep=…&ca=…`,
/// `cos://bucket/key?endpoint=…&keep=…&ca=…` or `tos://bucket/key?endpoint=…&region=…&ca=…`.
///
/// Credentials come from the environment, as `opendal` finds them. OSS and COS can only create, so a lock there has one
/// object per write.
///
/// ```
/// use leaderelection_opendal::OpendalLocation;
///
/// let location: OpendalLocation = "oss://bucket/locks/scheduler?endpoint=https://oss-cn-hangzhou.aliyuncs.com".parse()?;
/// assert_eq!((location.bucket.as_str(), location.key.as_str()), ("bucket", "locks/scheduler"));
/// # Ok::<(), leaderelection_opendal::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpendalLocation {
    /// The service.
    pub service: OpendalService,
    /// The bucket.
    pub bucket: String,
    /// The object's key.
    pub key: String,
    /// The service's address in the bucket's region; `None` for the environment's address: `OSS_ENDPOINT`,
    /// `COS_ENDPOINT` or `TOS_ENDPOINT`. TOS has an address for each [`region`](Self::region) without it.
    pub endpoint: Option<String>,
    /// The bucket's region, by which TOS signs. Without it, the region is `cn-beijing`.
    pub region: Option<String>,
    /// `true` if the bucket is part of the path and not of the host name, on OSS.
    pub path_style: bool,
    /// The number of newest objects that every write keeps, on OSS and COS. More of them are a history.
    pub keep: u64,
    /// The path of a file with certificates of authorities in PEM, which are trusted beside those of the system.
    pub ca: Option<String>,
}

impl OpendalService {
    const ALL: [Self; 3] = [Self::Oss, Self::Cos, Self::Tos];

    /// The scheme of the service's URLs.
    #[must_use]
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Oss => "oss",
            Self::Cos => "cos",
            Self::Tos => "tos",
        }
    }

    /// Returns `true` if the service can only create, so that a lock there has one object per write.
    #[must_use]
    pub fn is_sequenced(self) -> bool {
        matches!(self, Self::Oss | Self::Cos)
    }

    fn endpoint_variable(self) -> &'static str {
        match self {
            Self::Oss => "OSS_ENDPOINT",
            Self::Cos => "COS_ENDPOINT",
            Self::Tos => "TOS_ENDPOINT",
        }
    }

    fn credentials(self) -> &'static str {
        match self {
            Self::Oss => "ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET",
            Self::Cos => "TENCENTCLOUD_SECRET_ID and TENCENTCLOUD_SECRET_KEY",
            Self::Tos => "TOS_ACCESS_KEY_ID and TOS_SECRET_ACCESS_KEY",
        }
    }
}

impl OpendalLocation {
    /// Opens the store in this bucket, with the environment's credentials.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`] if there is no endpoint, or if the settings are invalid. Nothing is sent.
    pub fn open(&self) -> Result<Arc<dyn ConditionalStore>, StoreError> {
        Ok(match self.sequenced()? {
            Some(store) => Arc::new(store),
            None => Arc::new(OpendalAdapter::new(self.operator()?)?.with_renewal(self.transport())),
        })
    }

    /// Opens the store as [`open`](Self::open) does, if the service can only create.
    ///
    /// # Errors
    ///
    /// The same as for [`open`](Self::open).
    pub fn sequenced(&self) -> Result<Option<SequencedStore<OpendalObjects>>, StoreError> {
        if !self.service.is_sequenced() {
            return Ok(None);
        }
        Ok(Some(
            SequencedStore::new(OpendalObjects::new(self.operator()?)?.with_renewal(self.transport())).keep(self.keep),
        ))
    }

    /// The address that [`open`](Self::open) uses, which the environment may name.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`] if there is none, or if the environment's address is invalid.
    pub fn resolved_endpoint(&self) -> Result<String, StoreError> {
        let (service, name) = (self.service, self.service.endpoint_variable());
        let wrong = |problem: String| StoreError::new(StoreErrorKind::Fatal, format!("{self}: {problem}"));
        match self.endpoint.clone().or_else(|| variable(name)) {
            Some(endpoint) => checked_endpoint(&endpoint, service.credentials())
                .map_err(|problem| wrong(format!("{problem}; correct the parameter endpoint, or {name}"))),
            None if service == OpendalService::Tos => {
                Ok(format!("https://tos-{}.volces.com", self.region.as_deref().unwrap_or("cn-beijing")))
            }
            None => Err(wrong(format!("no endpoint; set the parameter endpoint, or {name}"))),
        }
    }

    fn operator(&self) -> Result<Operator, StoreError> {
        let (bucket, endpoint) = (&*self.bucket, &*self.resolved_endpoint()?);
        let built = match self.service {
            OpendalService::Oss => {
                let style = if self.path_style { "path" } else { "virtual" };
                Operator::new(Oss::default().bucket(bucket).endpoint(endpoint).addressing_style(style))
            }
            OpendalService::Cos => Operator::new(Cos::default().bucket(bucket).endpoint(endpoint)),
            OpendalService::Tos => {
                let region = self.region.as_deref().unwrap_or_default();
                Operator::new(Tos::default().bucket(bucket).endpoint(endpoint).region(region))
            }
        };
        let make = self.transport();
        let connected = built.and_then(|operator| {
            let context = operator.context().with_http_transport(make()?);
            Ok(operator.with_context(context))
        });
        connected.map_err(|error| {
            let advice = "cannot create a client; check the URL, and the environment's settings";
            failed(&self.to_string(), (StoreErrorKind::Fatal, advice), Words::of(error.message()))
        })
    }

    /// The function that creates a transport whose connections are its own. The default one belongs to the whole process. A
    /// request that is given up ends its connection, which would outlive it in HTTP/2.
    fn transport(&self) -> impl Fn() -> opendal::Result<HttpTransporter> + Send + Sync + 'static {
        let authorities = self.ca.as_deref().map(Authorities::of_url);
        move || {
            check_provider(cfg!(feature = "aws-lc-rs"), "leaderelection-opendal")
                .map_err(|error| unusable(&error.to_string()))?;
            let client = Client::builder().http1_only().pool_max_idle_per_host(16);
            let client = match &authorities {
                Some(authorities) => authorities.trusted_by(client).map_err(|error| unusable(&error.to_string()))?,
                None => client,
            };
            let client = client.build().map_err(|error| unusable("no HTTP client").set_source(error))?;
            Ok(HttpTransporter::new(ReqwestTransport::new(client)))
        }
    }
}

fn unusable(problem: &str) -> Error {
    Error::new(ErrorKind::Unexpected, problem)
}

/// The parameter of a service's address.
macro_rules! endpoint {
    ($service:ident) => {
        Parameter {
            name: "endpoint",
            help: "the URL of the service in the bucket's region",
            value: Value::Text(
                |url| checked_endpoint(url, OpendalService::$service.credentials()),
                |location| &mut location.endpoint,
            ),
        }
    };
}

const KEEP: Parameter<OpendalLocation> = Parameter {
    name: "keep",
    help: "the number of newest objects that every write keeps",
    value: Value::Count(DEFAULT_KEEP, |location| &mut location.keep),
};

const CA: Parameter<OpendalLocation> = Parameter {
    name: "ca",
    help: "a file with the certificates of authorities",
    value: Value::Text(checked_ca, |location| &mut location.ca),
};

impl Table for OpendalLocation {
    const EXAMPLE: &'static str = "oss://bucket/key?endpoint=https://oss-cn-hangzhou.aliyuncs.com, \
                                   cos://bucket/key?endpoint=https://cos.ap-singapore.myqcloud.com or \
                                   tos://bucket/key?region=cn-beijing";

    // In the order of `OpendalService::ALL`.
    const SCHEMES: &'static [Scheme<Self>] = &[
        Scheme {
            name: "oss",
            parameters: &[
                endpoint!(Oss),
                Parameter {
                    name: "path_style",
                    help: "true if the bucket is part of the path and not of the host name",
                    value: Value::Flag(|location| &mut location.path_style),
                },
                KEEP,
                CA,
            ],
            refused: &[],
        },
        Scheme { name: "cos", parameters: &[endpoint!(Cos), KEEP, CA], refused: &[] },
        Scheme {
            name: "tos",
            parameters: &[
                endpoint!(Tos),
                Parameter {
                    name: "region",
                    help: "the bucket's region, such as cn-beijing",
                    value: Value::Text(checked_region, |location| &mut location.region),
                },
                CA,
            ],
            refused: &[],
        },
    ];

    fn made(scheme: &str, authority: &str, path: String) -> Result<Self, String> {
        check_bucket(authority, &path, "key")?;
        let service = OpendalService::ALL.into_iter().find(|service| service.scheme() == scheme);
        let service = service.ok_or("another service than oss, cos and tos")?;
        let (bucket, key, keep) = (authority.to_owned(), path, DEFAULT_KEEP);
        Ok(Self { service, bucket, key, endpoint: None, region: None, path_style: false, keep, ca: None })
    }

    fn scheme(&self) -> &'static Scheme<Self> {
        &Self::SCHEMES[self.service as usize]
    }

    fn authority(&self) -> &str {
        &self.bucket
    }
}

impl Place for OpendalLocation {
    fn key(&self) -> &str {
        &self.key
    }

    fn key_mut(&mut self) -> &mut String {
        &mut self.key
    }

    fn store(&self) -> CompiledHere<'_, Result<Arc<dyn ConditionalStore>, StoreError>> {
        Box::pin(std::future::ready(self.open()))
    }

    fn server(&self) -> CompiledHere<'_, Result<Option<String>, StoreError>> {
        Box::pin(std::future::ready(self.resolved_endpoint().map(Some)))
    }
}

url_of_table!(OpendalLocation);

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<OpendalLocation, String> {
        text.parse().map_err(|error: leaderelection_store_support::url::UrlError| error.to_string())
    }

    #[test]
    fn reads_every_part() {
        let expected = OpendalLocation {
            service: OpendalService::Oss,
            bucket: "bucket".to_owned(),
            key: "a b/c".to_owned(),
            endpoint: Some("http://127.0.0.1:1".to_owned()),
            region: None,
            path_style: true,
            keep: 100,
            ca: Some("/etc/ca.pem".to_owned()),
        };
        assert_eq!(
            parse("oss://bucket/a%20b/c?endpoint=http://127.0.0.1:1&path_style=true&keep=100&ca=/etc/ca.pem"),
            Ok(expected)
        );
        let tos = parse("tos://bucket/key?region=cn-shanghai").unwrap();
        assert_eq!(tos.resolved_endpoint().unwrap(), "https://tos-cn-shanghai.volces.com");
    }

    #[test]
    fn a_wrong_url_is_shown_a_right_one_and_never_repeated() {
        for (text, problem) in [
            ("bucket/secret", "does not begin with oss://"),
            ("oss:///secret", "no bucket"),
            ("cos://bucket", "no key"),
            ("oss://user:secret@bucket/key", "credentials"),
            ("oss://bucket:80/secret", "port"),
            ("tos://my secret/key", "the name of the bucket is invalid"),
            (
                "oss://bucket/key?secret=1",
                "unknown parameter, number 1 after the ?; oss:// takes endpoint, path_style, keep, ca",
            ),
            ("oss://bucket/key?access_key_secret=secret", "unknown parameter, number 1"),
            ("cos://bucket/key?path_style=true", "cos:// takes endpoint, keep, ca"),
            ("tos://bucket/key?keep=5", "tos:// takes endpoint, region, ca"),
            ("oss://bucket/key?keep=0", "at least 1"),
            ("oss://bucket/key?path_style=secret", "path_style"),
            ("oss://bucket/key?endpoint=ftp://secret", "neither http:// nor https://"),
            ("oss://bucket/key?endpoint=http://user:secret@host", "set ALIBABA_CLOUD_ACCESS_KEY_ID"),
            ("cos://bucket/key?endpoint=http://user:secret@host", "set TENCENTCLOUD_SECRET_ID"),
            ("tos://bucket/key?endpoint=http://user:secret@host", "set TOS_ACCESS_KEY_ID"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
            assert!(error.contains("oss://bucket/key?endpoint="), "{text}: {error}");
            assert!(!error.contains("secret"), "{text}: {error}");
        }
    }

    #[tokio::test]
    async fn the_service_decides_between_one_object_and_one_per_write() {
        for (url, is_sequenced) in [
            ("oss://bucket/key?endpoint=http://127.0.0.1:1", true),
            ("cos://bucket/key?endpoint=http://127.0.0.1:1", true),
            ("tos://bucket/key?endpoint=http://127.0.0.1:1", false),
        ] {
            let location = parse(url).unwrap();
            assert_eq!(location.sequenced().unwrap().is_some(), is_sequenced, "{url}");
            // A service is refused here that has lost, in another version of `opendal`, what this service promises.
            let store = location.open().unwrap();
            assert!(store.describe("key").starts_with(location.service.scheme()), "{url}");
        }
    }

    #[test]
    fn a_missing_endpoint_says_where_it_belongs() {
        let error = parse("cos://bucket/key").unwrap().open().unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Fatal);
        assert!(error.to_string().contains("set the parameter endpoint, or COS_ENDPOINT"), "{error}");
    }
}
