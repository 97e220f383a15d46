//! The parameter `ca` of a URL: a file with authorities that are trusted beside those of the system.

#[cfg(any(feature = "azure", feature = "opendal-services", feature = "s3"))]
use leaderelection::names;

/// Checks the path of the file.
#[cfg(any(feature = "azure", feature = "opendal-services", feature = "s3"))]
pub(super) fn checked_ca(path: String) -> Result<String, String> {
    match names::problem_with(&path) {
        _ if path.is_empty() => Err("ca names no file with certificates of authorities".to_owned()),
        Some(problem) => Err(format!("the path that ca names {problem}")),
        None => Ok(path),
    }
}

// The reasons for which other URLs have no such parameter.
#[cfg(feature = "gcs")]
pub(super) const NOT_OF_GOOGLE: &str = "gs:// has no parameter ca, because Google's client takes no authorities: name a file with \
                                        those of the system and your own in SSL_CERT_FILE";
#[cfg(feature = "kubernetes")]
pub(super) const NOT_OF_LEASES: &str =
    "lease:// has no parameter ca: certificate-authority in the kubeconfig names the file, and a pod has its cluster's";
#[cfg(unix)]
pub(super) const NOT_OF_FILES: &str = "a directory has no server, and so no parameter ca";

/// Returns `true` if the query has this parameter.
#[cfg(any(feature = "kubernetes", unix))]
pub(super) fn is_in(query: &str) -> bool {
    query.split('&').any(is_this)
}

/// Returns `true` if the parameter of a query is this one.
#[cfg(any(feature = "azure", feature = "kubernetes", unix))]
pub(super) fn is_this(parameter: &str) -> bool {
    parameter.starts_with("ca=")
}

#[cfg(test)]
mod tests {
    use crate::url::{Location, UrlError};

    #[tokio::test]
    async fn a_file_without_an_authority_says_who_names_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ca.pem");
        let urls: &[&str] = &[
            #[cfg(feature = "s3")]
            "s3://bucket/key",
            #[cfg(feature = "azure")]
            "https://account.blob.core.windows.net/container/blob?sv=1&sig=secret",
            #[cfg(feature = "opendal-services")]
            "tos://bucket/key",
        ];
        for url in urls {
            let parameter = if url.contains('?') { "&ca" } else { "?ca" };
            let location: Location = format!("{url}{parameter}={}", path.display()).parse().unwrap();
            for (content, problem) in [
                (None, "cannot be read"),
                (Some(""), "has no certificate of an authority"),
                (
                    Some("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"),
                    "has no certificate of an authority",
                ),
                (Some("-----BEGIN CERTIFICATE-----\n!\n"), "is damaged"),
            ] {
                if let Some(content) = content {
                    std::fs::write(&path, content).unwrap();
                }
                let error = location.open().await.err().unwrap();
                assert_eq!(error.kind(), leaderelection::StoreErrorKind::Fatal);
                let error = format!("{error}: {:?}", std::error::Error::source(&error));
                assert!(error.contains("which the parameter ca names") && error.contains(problem), "{url}: {error}");
            }
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_url_that_cannot_name_one_says_what_can() {
        let cases: &[(&str, &str)] = &[
            #[cfg(feature = "s3")]
            ("s3://bucket/key?ca=", "ca names no file"),
            #[cfg(feature = "s3")]
            ("s3://bucket/key?ca=/etc/ca.pem%0D", "the path that ca names ends with U+000D"),
            #[cfg(feature = "azure")]
            ("az://account/container/blob?ca=", "ca names no file"),
            #[cfg(feature = "azure")]
            ("az://account/container/blob?ca=/a&ca=/b", "a parameter stands there twice"),
            #[cfg(feature = "azure")]
            ("az://account/container/blob?ca=/a&sv=1", "neither a SAS nor ca=…"),
            #[cfg(feature = "gcs")]
            ("gs://bucket/key?ca=/etc/ca.pem", "in SSL_CERT_FILE"),
            #[cfg(feature = "kubernetes")]
            ("lease://default/a?ca=/etc/ca.pem", "certificate-authority in the kubeconfig"),
            #[cfg(unix)]
            ("file:///var/lib/a?ca=/etc/ca.pem", "a directory has no server"),
            #[cfg(unix)]
            ("sequenced+file:///var/lib/a?keep=3&ca=/etc/ca.pem", "a directory has no server"),
        ];
        for (url, problem) in cases {
            let error = url.parse::<Location>().map_err(|error: UrlError| error.to_string()).unwrap_err();
            assert!(error.contains(problem), "{url}: {error}");
        }
    }
}
