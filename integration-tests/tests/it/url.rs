//! Locks named by a URL, with credentials and endpoints from the environment.
//!
//! A process cannot safely change its own environment, so each test runs this program once more.

use std::path::Path;

use leaderelection::implement::{ConditionalStore as _, ConditionalStoreExt, ListedObject};
use leaderelection::{LeaderElectionRecord, ObjectStoreBasedLock as _};
use leaderelection_backends::url::Location;
use leaderelection_integration_tests::servers::azurite::Azurite;
use leaderelection_integration_tests::servers::fake_gcs::{BUCKET, FakeGcs, Options};
use leaderelection_integration_tests::servers::scripted::ScriptedServer;
use leaderelection_integration_tests::servers::seaweedfs::SeaweedFs;
use leaderelection_integration_tests::servers::tls::TlsFront;
use leaderelection_integration_tests::servers::unique_name;
use tokio::process::Command;

const URL: &str = "LEADERELECTION_URL_TEST";

const RECORD: &str = r#"{"holderIdentity":"candidate","leaseDuration":"15s","acquireTime":"2026-02-02T10:15:30.000000Z",
    "renewTime":"2026-02-02T10:15:30.000000Z","leaderTransitions":0,"writeId":"0"}"#;

/// The test in the other process. It does nothing unless the environment names a lock.
#[tokio::test]
async fn a_lock_is_used() {
    let Ok(url) = std::env::var(URL) else { return };
    let location: Location = url.parse().expect("a URL");
    let lock = location.lock("candidate").await.expect("a lock");
    let record = LeaderElectionRecord::from_json(RECORD.as_bytes(), lock.max_lease_duration()).expect("a record");
    let created = lock.create(&record).await.expect("created");
    let version = lock.update(&record, &created).await.expect("updated");
    assert_eq!(lock.get().await.expect("read").expect("a record").version, version);
    let store = lock.store();
    assert_eq!(ListedObject::keys(store.list(location.key()).await.expect("listed")), [location.key()]);
    store.delete(location.key(), Some(&version)).await.expect("deleted");
    println!("used {location}");
    println!("at {}", location.endpoint().await.expect("an endpoint").unwrap_or_default());
}

/// The other test in the other process: one request, whatever the answer.
#[tokio::test]
async fn a_lock_is_read() {
    let Ok(url) = std::env::var(URL) else { return };
    let lock = url.parse::<Location>().expect("a URL").lock("candidate").await.expect("a lock");
    drop(lock.get().await);
}

async fn run(url: &str, environment: &[(&str, &str)]) -> (bool, String) {
    run_test("url::a_lock_is_used", url, environment).await
}

async fn run_test(test: &str, url: &str, environment: &[(&str, &str)]) -> (bool, String) {
    let mut process = Command::new(std::env::current_exe().expect("this program"));
    process.args(["--exact", test, "--nocapture"]).env_remove("AWS_CA_BUNDLE").env(URL, url).kill_on_drop(true);
    process.envs(environment.iter().copied());
    let output = process.output().await.expect("this program once more");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

async fn assert_used(url: &str, environment: &[(&str, &str)]) {
    let (success, text) = run(url, environment).await;
    assert!(success && text.contains(&format!("used {url}")), "{url}: {text}");
}

/// Checks that the location knows the server that was really asked.
async fn assert_used_at(url: &str, environment: &[(&str, &str)], endpoint: &str) {
    assert_used(url, environment).await;
    let (_, text) = run(url, environment).await;
    assert!(text.lines().any(|line| line == format!("at {endpoint}")), "{url} is at {endpoint}: {text}");
}

fn directory() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

#[tokio::test]
async fn google_storage_by_storage_emulator_host() {
    let server = FakeGcs::start(Options::default()).await;
    let url = format!("gs://{BUCKET}/locks/a%20lock");
    assert_used_at(&url, &[("STORAGE_EMULATOR_HOST", &server.url())], &server.url()).await;
    assert_used(&url, &[("STORAGE_EMULATOR_HOST", server.url().trim_start_matches("http://"))]).await;
}

#[tokio::test]
async fn google_storage_by_an_endpoint_in_the_url() {
    let server = FakeGcs::start(Options::default()).await;
    let url = format!("gs://{BUCKET}/locks/a?endpoint={}", server.url());
    assert_used_at(&url, &[("STORAGE_EMULATOR_HOST", "127.0.0.1:1")], &server.url()).await;
}

/// Regional and private endpoints of Google, and clouds of states of Azure. The server is the proxy of the request, and so
/// sees which host the SDK asks, and what the request calls that host.
#[tokio::test]
async fn hosts_of_other_clouds_are_asked_as_the_sdks_resolve_them() {
    let google = |host: &str| format!("gs://bucket/key?endpoint=http://{host}");
    let azure = |host: &str| format!("https://{host}/container/key?sv=1&sig=secret");
    let public = "storage.googleapis.com";
    for (url, asked, named) in [
        (google("storage.europe-west3.rep.googleapis.com"), "http://storage.europe-west3.rep.googleapis.com/", None),
        (google("storage-locks.p.googleapis.com"), "http://storage-locks.p.googleapis.com/", Some(public)),
        (google("restricted.googleapis.com"), "http://restricted.googleapis.com/", Some(public)),
        (azure("account.blob.core.chinacloudapi.cn"), "account.blob.core.chinacloudapi.cn:443", None),
        (azure("account.privatelink.blob.core.windows.net"), "account.privatelink.blob.core.windows.net:443", None),
    ] {
        let server = ScriptedServer::start([]).await;
        let proxy = server.url();
        let environment = [
            ("http_proxy", &*proxy),
            ("https_proxy", &proxy),
            ("no_proxy", ""),
            ("STORAGE_EMULATOR_HOST", "127.0.0.1:1"),
        ];
        let (success, text) = run_test("url::a_lock_is_read", &url, &environment).await;
        let requests = server.requests();
        assert!(success && requests.len() == 1, "{url}: {requests:?}: {text}");
        assert!(requests[0].target.starts_with(asked), "{url}: {requests:?}");
        if let Some(named) = named {
            assert_eq!(requests[0].header("host"), Some(named), "{url}");
        }
    }
}

#[tokio::test]
async fn azure_by_connection_string() {
    let server = Azurite::start(directory());
    server.container("container").create(None).await.expect("a container");
    let (account, _) = server.account_key();
    let environment = [("AZURE_STORAGE_CONNECTION_STRING", server.connection_string())];
    let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
    let endpoint = server.container_url("container");
    assert_used_at(&format!("az://{account}/container/locks/a%20lock"), &environment, &endpoint).await;
    assert_used(&format!("{}/locks/another", server.container_url("container")), &environment).await;
    let (success, text) = run("az://other/container/lock", &environment).await;
    assert!(
        !success && text.contains("AZURE_STORAGE_CONNECTION_STRING is not for the storage account other"),
        "{text}"
    );
}

#[tokio::test]
async fn s3_by_endpoint_and_keys() {
    let server = SeaweedFs::start(directory());
    server.create_bucket("bucket").await;
    let (keys, endpoint) = (server.environment(), server.url());
    let region_and_endpoint = [("AWS_REGION", "us-east-1"), ("AWS_ENDPOINT_URL", endpoint.as_str())];
    let with_endpoint: Vec<_> = keys.into_iter().chain(region_and_endpoint).collect();
    assert_used("s3://bucket/locks/a%20lock", &with_endpoint).await;
    let profile = directory().join(unique_name());
    let settings = format!("[default]\nregion = us-east-1\nendpoint_url = {endpoint}\n");
    std::fs::write(&profile, settings).expect("a profile");
    let profile = profile.display().to_string();
    let with_profile: Vec<_> = keys.into_iter().chain([("AWS_CONFIG_FILE", profile.as_str())]).collect();
    assert_used_at("s3://bucket/locks/by-profile", &with_profile, &format!("{endpoint}/bucket")).await;
    assert_used(&format!("s3://bucket/locks/another?endpoint={endpoint}"), &keys).await;
}

/// The first request to an S3-compatible store is the same, wherever its server is named.
#[tokio::test]
async fn s3_by_any_endpoint_is_asked_in_one_way() {
    let directory = directory().join(unique_name());
    std::fs::create_dir(&directory).expect("a directory");
    let [file, service] = ["profile", "service"].map(|name| directory.join(name).display().to_string());
    for path in ["", "/storage/v1/s3"] {
        let server = ScriptedServer::start([]).await;
        let endpoint = format!("{}{path}", server.url().replace("127.0.0.1", "localhost"));
        std::fs::write(&file, format!("[default]\nendpoint_url = {endpoint}\n")).expect("a profile");
        let services = format!("[default]\nservices = ours\n[services ours]\ns3 =\n  endpoint_url = {endpoint}\n");
        std::fs::write(&service, services).expect("a profile");
        for (parameters, variable) in [
            (format!("?endpoint={endpoint}"), ("AWS_ENDPOINT_URL", "http://127.0.0.1:1")),
            (String::new(), ("AWS_ENDPOINT_URL", &*endpoint)),
            (String::new(), ("AWS_ENDPOINT_URL_S3", &endpoint)),
            (String::new(), ("AWS_CONFIG_FILE", &file)),
            (String::new(), ("AWS_CONFIG_FILE", &service)),
        ] {
            let before = server.requests().len();
            let keys =
                [("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret"), ("AWS_RETRY_MODE", "standard")];
            let environment = [&keys[..], &[variable]].concat();
            let (_, text) = run(&format!("s3://bucket/key{parameters}"), &environment).await;
            let requests = server.requests().split_off(before);
            let [request] = &requests[..] else { panic!("{variable:?}: {requests:?}: {text}") };
            let target = request.target.split('?').next();
            let expected = format!("{path}/bucket/key");
            assert_eq!((request.method.as_str(), target), ("PUT", Some(&*expected)), "{variable:?}");
            let authorization = request.header("authorization").unwrap_or_default();
            assert!(authorization.contains("/us-east-1/s3/"), "{variable:?}: {authorization}");
            assert!(request.header("content-md5").is_some(), "{variable:?}: {request:?}");
            assert_eq!(
                request.header("x-amz-trailer").or(request.header("x-amz-checksum-crc32")),
                None,
                "{variable:?}"
            );
        }
    }
    let _ = std::fs::remove_dir_all(directory);
}

/// The servers of companies have certificates of their own authorities, which no system knows.
#[tokio::test]
async fn an_authority_that_is_unknown_is_told_and_can_be_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = SeaweedFs::start(directory.path());
    server.create_bucket("bucket").await;
    let front = TlsFront::start(&server.url(), &["http/1.1"], directory.path()).await;
    let (address, certificate) = (front.url(), front.certificate().display().to_string());
    let s3 = format!("s3://bucket/key?endpoint={address}");
    let google = [("STORAGE_EMULATOR_HOST", "127.0.0.1:1")];
    let unknown = [&google[..], &server.environment()[..]].concat();
    let blob = format!("{address}/account/container/key?sv=1&sig=secret");
    for url in [&s3, &format!("gs://bucket/key?endpoint={address}"), &blob] {
        let (success, text) = run(url, &unknown).await;
        let advice = "the server's certificate was issued by an authority that this machine does not know";
        let remedy = "name a file with the authority's certificate by ?ca= in the URL, for Google in SSL_CERT_FILE";
        assert!(!success && text.contains(advice) && text.contains(remedy), "{url}: {text}");
    }
    let profile = directory.path().join("profile").display().to_string();
    std::fs::write(&profile, format!("[default]\nca_bundle = {certificate}\n")).expect("a profile");
    let keys = server.environment();
    let with = |setting| [&keys[..], &[setting]].concat();
    assert_used(&s3, &with(("AWS_CA_BUNDLE", &*certificate))).await;
    assert_used(&s3, &with(("AWS_CONFIG_FILE", &*profile))).await;
    assert_used(&format!("{s3}&ca={certificate}"), &with(("AWS_CA_BUNDLE", "/nonexistent/ca.pem"))).await;
    let (success, text) = run(&s3, &with(("AWS_CA_BUNDLE", "/nonexistent/ca.pem"))).await;
    assert!(
        !success && text.contains("/nonexistent/ca.pem, which AWS_CA_BUNDLE, or ca_bundle of a profile, names"),
        "{text}"
    );
    // The proxy of a company may be what has such a certificate.
    let proxy = ("HTTPS_PROXY", "http://127.0.0.1:1");
    let trusted = format!("{s3}&ca={certificate}");
    let (success, text) = run(&trusted, &with(proxy)).await;
    assert!(!success && text.contains("also check the proxy that HTTPS_PROXY names"), "{text}");
    assert_used(&trusted, &[&keys[..], &[proxy, ("NO_PROXY", "127.0.0.1")]].concat()).await;
}

#[tokio::test]
async fn an_authority_is_named_for_azure() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Azurite::start(self::directory());
    server.container("container").create(None).await.expect("a container");
    let front = TlsFront::start(&server.url(), &["http/1.1"], directory.path()).await;
    let certificate = front.certificate().display().to_string();
    let access = server.connection_string().replace(&server.url(), &front.url());
    let (account, _) = server.account_key();
    let url = format!("az://{account}/container/locks/a?ca={certificate}");
    assert_used(&url, &[("AZURE_STORAGE_CONNECTION_STRING", &access)]).await;
    let connections = front.connections();
    assert!(connections > 0, "{connections} connections");
}

#[tokio::test]
async fn files_and_memory_need_no_environment() {
    let path = directory().join(unique_name());
    assert_used(&format!("file://{}/lock", path.display()), &[]).await;
    let _ = std::fs::remove_dir_all(path);
    assert_used("memory:locks/scheduler", &[]).await;
}
