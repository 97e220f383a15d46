use super::{Location, UrlError};

/// URLs of every kind, in the form of their `Display`.
const CANONICAL: &[&str] = &[
    #[cfg(feature = "s3")]
    "s3://bucket/locks/scheduler",
    #[cfg(feature = "s3")]
    "s3://my.bucket/a%20b//c%23d%3F/../?region=eu-west-1&endpoint=http://127.0.0.1:1&path_style=false",
    #[cfg(feature = "s3")]
    "s3://bucket/locks/scheduler?endpoint=http://127.0.0.1:7480&bare_etags=true",
    #[cfg(feature = "gcs")]
    "gs://bucket/locks//a%20b/../%23%3F",
    #[cfg(feature = "gcs")]
    "gs://bucket/locks/scheduler?endpoint=https://storage.europe-west3.rep.googleapis.com",
    #[cfg(feature = "azure")]
    "az://account/container/locks/scheduler",
    #[cfg(feature = "azure")]
    "http://127.0.0.1:10000/devstoreaccount1/container/blob",
    #[cfg(feature = "azure")]
    "az://account/container/blob?ca=/etc/ssl/our%20own.pem",
    #[cfg(feature = "azure")]
    "https://minio.internal/container/blob?ca=/etc/ssl/ca.pem",
    #[cfg(feature = "azure")]
    "https://account.blob.core.chinacloudapi.cn/$root/%25",
    #[cfg(feature = "kubernetes")]
    "lease://kube-system/scheduler",
    #[cfg(feature = "kubernetes")]
    "lease:///scheduler",
    #[cfg(feature = "kubernetes")]
    "lease://default/scheduler?label=app.kubernetes.io/name=scheduler&label=team=payments&label=tier=",
    #[cfg(feature = "opendal-services")]
    "oss://bucket/a%20b?endpoint=http://127.0.0.1:1&path_style=true&keep=100",
    #[cfg(feature = "opendal-services")]
    "cos://bucket-1250000000/locks/scheduler",
    #[cfg(feature = "opendal-services")]
    "tos://bucket/locks/scheduler?region=cn-shanghai&ca=/etc/ssl/ca.pem",
    #[cfg(feature = "opendal-services")]
    "tos://bucket/locks/scheduler?region=cn-shanghai",
    #[cfg(unix)]
    "file:///var/lib/my%20service/scheduler",
    #[cfg(unix)]
    "file:///scheduler",
    "memory:a name ? # %",
];

fn parse(text: &str) -> Result<Location, String> {
    text.parse().map_err(|error: UrlError| error.to_string())
}

#[test]
fn a_url_is_shown_as_it_was_written() {
    for url in CANONICAL {
        assert_eq!(parse(url).unwrap().to_string(), *url);
    }
}

#[test]
fn a_configuration_file_holds_the_url() {
    for url in CANONICAL {
        let location = parse(url).unwrap();
        let text = serde_json::to_string(&location).unwrap();
        assert_eq!(text, serde_json::to_string(url).unwrap());
        assert_eq!(serde_json::from_str::<Location>(&text).unwrap(), location);
    }
    let error = serde_json::from_str::<Location>(r#""ftp://secret""#).unwrap_err().to_string();
    assert!(error.starts_with(&parse("ftp://secret").unwrap_err()), "{error}");
    assert!(!error.contains("secret"), "{error}");
    let error = serde_json::from_str::<Location>("5").unwrap_err().to_string();
    assert!(error.contains("expected the URL of a lock"), "{error}");
}

#[test]
fn constructors_are_as_strict_as_urls() {
    use super::*;

    let same = |location: Location, url| assert_eq!(Ok(location), parse(url));
    let refused = |error: UrlError, problem: &str| assert!(error.to_string().contains(problem), "{error}");
    same(MemoryLocation::new("a name").unwrap().into(), "memory:a name");
    refused(MemoryLocation::new("").unwrap_err(), "no name");
    #[cfg(unix)]
    {
        for directory in ["/var/lib/my service", "/var/lib/my service/"] {
            let location = FileLocation::directory(directory, "a?b").unwrap();
            same(location.into(), "file:///var/lib/my%20service/a%3Fb");
        }
        same(FileLocation::directory("/", "name").unwrap().into(), "file:///name");
        refused(FileLocation::directory("var/lib", "name").unwrap_err(), "not absolute");
        refused(FileLocation::directory("/var/../lib", "name").unwrap_err(), "must not contain ..");
        refused(FileLocation::directory("/var ", "name").unwrap_err(), "the directory ends with U+0020");
        refused(FileLocation::directory("/var", "name\r").unwrap_err(), "the key ends with U+000D");
        refused(FileLocation::directory("/var/lib", "").unwrap_err(), "no name");
        refused(FileLocation::directory("/var", "lib/name").unwrap_err(), "a slash in the name");
    }
    #[cfg(feature = "s3")]
    {
        let location = S3Location::new("bucket", "a b").unwrap();
        same(location.clone().into(), "s3://bucket/a%20b");
        let elsewhere =
            location.clone().with("endpoint", "http://127.0.0.1:1").unwrap().with("region", "eu-west-1").unwrap();
        same(elsewhere.into(), "s3://bucket/a%20b?endpoint=http://127.0.0.1:1&region=eu-west-1");
        refused(S3Location::new("a/b", "key").unwrap_err(), "the name of the bucket is invalid");
        refused(S3Location::new("bucket", "").unwrap_err(), "no key");
        refused(location.clone().with("region", "eu west").unwrap_err(), "the region");
        refused(location.with("endpoint", "ftp://host").unwrap_err(), "the endpoint");
    }
    #[cfg(feature = "gcs")]
    {
        same(GcsLocation::new("bucket", "a b").unwrap().into(), "gs://bucket/a%20b");
        refused(GcsLocation::new("", "key").unwrap_err(), "no bucket");
        let location = GcsLocation::new("bucket", "key").unwrap();
        same(
            location.clone().with("endpoint", "http://127.0.0.1:1").unwrap().into(),
            "gs://bucket/key?endpoint=http://127.0.0.1:1",
        );
        refused(location.with("endpoint", "storage-locks.p.googleapis.com").unwrap_err(), "the endpoint is not a URL");
    }
    #[cfg(feature = "kubernetes")]
    {
        same(LeaseLocation::new("default", "scheduler").unwrap().into(), "lease://default/scheduler");
        same(LeaseLocation::new("", "scheduler").unwrap().into(), "lease:///scheduler");
        refused(LeaseLocation::new("default", "").unwrap_err(), "no name of a Lease");
        refused(LeaseLocation::new("default", "locks/Scheduler").unwrap_err(), "lower-case letters");
        same(
            LeaseLocation::new("", "scheduler").unwrap().with("label", "team=payments").unwrap().into(),
            "lease:///scheduler?label=team%3Dpayments",
        );
        for (query, problem) in [
            ("x=1", "lease:// takes label"),
            ("label=secret", "has no ="),
            ("label==secret", "not a label"),
            ("label=a/=secret", "not a label"),
            ("label=a b=secret", "not a label"),
            ("label=team=%0Asecret", "not a label"),
        ] {
            let error = parse(&format!("lease://default/scheduler?{query}")).unwrap_err();
            assert!(error.contains(problem) && !error.contains("secret"), "{query}: {error}");
        }
    }
    #[cfg(feature = "azure")]
    {
        same(AzureLocation::new("account", "container", "a b").unwrap().into(), "az://account/container/a%20b");
        refused(AzureLocation::new("account", "con tainer", "key").unwrap_err(), "the container");
        refused(AzureLocation::new("account", "container", "").unwrap_err(), "no blob");
    }
}

#[tokio::test]
async fn stores_on_this_machine_have_no_endpoint() {
    for url in CANONICAL.iter().filter(|url| url.starts_with("file:") || url.starts_with("memory:")) {
        assert_eq!(parse(url).unwrap().endpoint().await.unwrap(), None);
    }
}

#[test]
fn another_key_is_another_object_of_the_same_store() {
    for url in CANONICAL {
        let location = parse(url).unwrap();
        let other = location.with_key("other");
        assert_eq!(other.key(), "other");
        assert_ne!(other, location);
        assert_eq!(other.with_key(location.key()), location);
        assert_eq!(parse(&other.to_string()), Ok(other));
    }
}

#[test]
fn a_service_that_holds_no_lock_is_refused_by_name() {
    for scheme in ["b2", "obs", "swift", "upyun"] {
        let error = parse(&format!("{scheme}://secret/secret")).unwrap_err();
        assert!(error.starts_with(&format!("{scheme}:// holds no lock: ")), "{error}");
        assert!(error.contains("run leaderelect probe") && !error.contains("secret"), "{error}");
    }
}

#[test]
fn what_is_no_url_is_shown_right_ones() {
    for text in ["secret", "ftp://secret", "/secret", "S3://secret", "://secret"] {
        let error = parse(text).unwrap_err();
        assert!(error.contains("memory:") && error.contains("s3://bucket/key"), "{text}: {error}");
        assert!(!error.contains("secret"), "{text}: {error}");
    }
}

#[cfg(unix)]
#[test]
fn a_wrong_file_url_is_shown_a_right_one() {
    for (text, problem) in [
        ("file:secret", "does not begin with file://"),
        ("file://secret/secret", "three slashes"),
        ("file:///", "no name"),
        ("file:///secret/", "no name"),
        ("file:///secret?secret", "%3F"),
        ("file:///secret#secret", "%23"),
        ("file:///%FF", "UTF-8"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(problem), "{text}: {error}");
        assert!(error.ends_with("looks like file:///directory/name"), "{text}: {error}");
        assert!(!error.contains("secret"), "{text}: {error}");
    }
}

#[tokio::test]
async fn locks_in_memory_are_shared_in_a_process() {
    use leaderelection::implement::{ConditionalStore, Precondition};

    let store = || async { parse("memory:shared").unwrap().open().await.unwrap() };
    store().await.put("shared", "{}".into(), &Precondition::Absent).await.unwrap();
    assert!(store().await.get("shared").await.unwrap().is_some());
}

#[cfg(any(feature = "azure", feature = "gcs", feature = "s3"))]
#[tokio::test]
async fn a_url_without_bucket_or_container_is_refused_at_once() {
    use leaderelection::ObjectLock;
    use leaderelection::implement::FromEnv;

    async fn refusal<S: FromEnv>(place: &str) -> String {
        let error = ObjectLock::<S>::from_env(place, "locks/scheduler").await.unwrap_err();
        assert_eq!(error.kind(), leaderelection::StoreErrorKind::Fatal);
        error.to_string()
    }

    for place in ["", "a/b", "s3://bucket"] {
        #[cfg(feature = "s3")]
        assert!(refusal::<crate::s3::S3Store>(place).await.contains("bucket"), "{place}");
        #[cfg(feature = "gcs")]
        assert!(refusal::<crate::gcs::GcsStore>(place).await.contains("bucket"), "{place}");
        #[cfg(feature = "azure")]
        assert!(refusal::<crate::azure::AzureStore>(place).await.contains("container"), "{place}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn every_lock_has_an_identity_of_its_own_unless_it_is_given_one() {
    use leaderelection::ObjectStoreBasedLock;

    use crate::file::FileLock;

    let open = || async { FileLock::from_env("/var/lib/my-service", "scheduler").await.unwrap() };
    let (first, second) = (open().await, open().await);
    assert_eq!(first.describe(), "file:///var/lib/my-service/scheduler");
    assert_ne!(first.identity(), second.identity());
    assert_eq!(second.with_identity("node-1").identity(), "node-1");
}

#[cfg(feature = "azure")]
#[test]
fn a_sas_is_read_from_a_configuration_file_and_never_written_to_one() {
    let text = r#""https://account.blob.core.windows.net/container/blob?sv=1&sig=secret""#;
    let location: Location = serde_json::from_str(text).unwrap();
    let Location::Azure(blob) = &location else { panic!("another store") };
    assert_eq!(blob.sas.as_ref().unwrap().secret(), "sv=1&sig=secret");
    for error in [serde_json::to_string(&location).unwrap_err(), serde_json::to_string(blob).unwrap_err()] {
        let error = error.to_string();
        assert!(error.contains("az://account/container/blob has a SAS") && !error.contains("secret\""), "{error}");
        assert!(!error.contains("sig="), "{error}");
    }
    let mut without = blob.clone();
    without.sas = None;
    assert_eq!(serde_json::to_string(&without).unwrap(), r#""az://account/container/blob""#);
}
