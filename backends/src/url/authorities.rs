//! Tests of the parameter `ca`: a file with authorities that are trusted beside those of the system.

use super::{Location, UrlError};

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
            (Some("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), "has no certificate of an authority"),
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
        ("s3://bucket/key?ca=", "ca is empty: name a file"),
        #[cfg(feature = "s3")]
        ("s3://bucket/key?ca=/etc/ca.pem%0D", "the path that ca names ends with U+000D"),
        #[cfg(feature = "azure")]
        ("az://account/container/blob?ca=", "ca is empty: name a file"),
        #[cfg(feature = "azure")]
        ("az://account/container/blob?ca=/a&ca=/b", "the parameter ca occurs twice"),
        #[cfg(feature = "azure")]
        ("az://account/container/blob?ca=/a&sv=1", "a SAS without sig; without a SAS, an Azure URL takes only ca"),
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
