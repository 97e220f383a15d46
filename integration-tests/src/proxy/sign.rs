//! The signatures of requests that a proxy passes on.

use std::sync::Arc;
use std::time::SystemTime;

use aws_sdk_s3::config::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, UriPathNormalizationMode,
    sign,
};
use aws_sigv4::sign::v4;
use hyper::HeaderMap;
use hyper::header::HeaderName;

use super::traffic::Request;

/// A function that makes a request acceptable to the server: the client has signed it for the proxy's address,
/// and the proxy may have changed it. The `Host` is already the server's.
pub type Signer = Arc<dyn Fn(&mut Request) + Send + Sync>;

/// A signer for servers that accept the request unchanged.
#[must_use]
pub fn unsigned() -> Signer {
    Arc::new(|_| {})
}

/// A signer for servers that require headers with a token.
#[must_use]
pub fn with_headers(headers: HeaderMap) -> Signer {
    Arc::new(move |request| {
        for (name, value) in &headers {
            request.headers.insert(name, value.clone());
        }
    })
}

/// A signer for S3, whose signatures cover the host and the headers with the conditions.
///
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html>
#[must_use]
pub fn s3(credentials: Credentials, region: String) -> Signer {
    let identity = credentials.into();
    Arc::new(move |request| {
        let mut settings = SigningSettings::default();
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(&region)
            .name("s3")
            .time(SystemTime::now())
            .settings(settings)
            .build()
            .expect("nothing is missing")
            .into();
        for header in ["authorization", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token"] {
            request.headers.remove(header);
        }
        let host = request.header("host").expect("HTTP/1.1 has one");
        let url = format!("http://{host}{}", request.target);
        let headers = request
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().expect("the SDK's headers are text")));
        let body = SignableBody::Bytes(&request.body);
        let signable = SignableRequest::new(request.method.as_str(), url, headers, body).expect("a request");
        let (instructions, _) = sign(signable, &parameters).expect("a signature").into_parts();
        for (name, value) in instructions.headers() {
            let name: HeaderName = name.parse().expect("a name");
            request.headers.insert(name, value.parse().expect("a value"));
        }
    })
}
