//! The suites on a service behind TLS, of which they know only the URL from the environment.
//!
//! The services are the servers of the other tests, here treated as foreign services. A process cannot safely
//! change its own environment, so each test runs this program once more.

use std::time::Duration;

use leaderelection::implement::{ConditionalStore, ConditionalStoreExt, ListedObject};
use leaderelection_backends::azure::{AzureCredential, AzureStore};
use leaderelection_backends::gcs::GcsStore;
use leaderelection_backends::s3::S3Store;
use leaderelection_integration_tests::servers::express::{self, Express};
use leaderelection_integration_tests::servers::fake_gcs::{BUCKET, FakeGcs, Options};
use leaderelection_integration_tests::servers::tls::TlsFront;
use leaderelection_integration_tests::servers::unique_name;
use tempfile::TempDir;
use tokio::process::Command;

use crate::cloud::azure::azurite;
use crate::cloud::s3::seaweedfs;
use crate::cloud::{azure, gcs, s3};

/// One test of each kind, where `*` stands for the cloud: with the lease of production, all tests would take
/// minutes.
const TESTS: [&str; 3] = [
    "*::server::the_lock_keeps_its_contract",
    "lying_network::*::a_renewal_without_a_good_answer_is_not_a_lost_lease",
    "lying_network::*::a_server_that_ignores_conditions_lets_everybody_win",
];

/// The case of [`crate::lying_network`] that is run.
const CASE: (&str, &str) = ("LEADERELECTION_TEST_CASE", "committed, and the connection dropped");

/// The folder that belongs to the tests of another process, also in the form for a URL.
fn folder() -> (String, String) {
    let folder = format!("a place/for {}", unique_name());
    let escaped = folder.replace(' ', "%20");
    (folder, escaped)
}

async fn run(cloud: &str, front: &TlsFront, environment: &[(&str, &str)]) {
    let certificate = front.certificate().to_str().expect("a path in UTF-8");
    let environment = [&[("SSL_CERT_FILE", certificate), CASE], environment].concat();
    run_tests(&TESTS.map(|test| test.replace('*', cloud)), &environment).await;
    assert!(front.connections() > 10, "{} connections", front.connections());
}

async fn run_tests(tests: &[String], environment: &[(&str, &str)]) {
    let mut process = Command::new(std::env::current_exe().expect("this program"));
    process.arg("--exact").args(tests).envs(environment.iter().copied()).kill_on_drop(true);
    let output = process.output().await.expect("this program once more");
    let printed = String::from_utf8_lossy(&output.stdout);
    let all_passed = format!("ok. {} passed; 0 failed", tests.len());
    assert!(output.status.success() && printed.contains(&all_passed), "{printed}");
}

async fn assert_left_as_it_was(store: &dyn ConditionalStore, folder: &str) {
    assert_eq!(ListedObject::keys(store.list(folder).await.expect("a listing")), Vec::<String>::new());
}

async fn front(url: &str, protocols: &[&str]) -> (TlsFront, TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    (TlsFront::start(url, protocols, directory.path()).await, directory)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_s3() {
    let server = seaweedfs().await;
    let (front, _directory) = front(&server.url(), &["http/1.1"]).await;
    let (folder, escaped) = folder();
    let url = format!("s3://bucket/{escaped}?region=us-east-1&endpoint={}", front.url());
    run("s3", &front, &[&[(s3::URL_VARIABLE, url.as_str())], &server.environment()[..]].concat()).await;
    assert_left_as_it_was(&S3Store::new(server.client(), "bucket"), &folder).await;
}

/// No proxy of a test can open the sessions of a bucket that the tests do not play.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_directory_bucket() {
    let gateway = Express::start(seaweedfs().await, Duration::from_secs(300)).await;
    let (folder, escaped) = folder();
    let url = format!("s3://{}/{escaped}?region=us-east-1&endpoint={}", express::BUCKET, gateway.url());
    let tests = ["s3::server::the_store_keeps_its_contract", "s3::server::the_lock_keeps_its_contract", "fence::on_s3"];
    let environment = [&[(s3::URL_VARIABLE, url.as_str())], &gateway.environment()[..]].concat();
    run_tests(&tests.map(str::to_owned), &environment).await;
    assert_left_as_it_was(&S3Store::new(gateway.client(), express::BUCKET), &folder).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_azure_with_a_sas() {
    let server = azurite().await;
    let (front, _directory) = front(&server.url(), &["http/1.1"]).await;
    let (folder, escaped) = folder();
    let container_url = server.container_url("container").replace(&server.url(), &front.url());
    let url = format!("{container_url}/{escaped}?{}", server.sas("rwdlc"));
    run("azure", &front, &[(azure::URL_VARIABLE, &url)]).await;
    assert_left_as_it_was_on_azure(&folder).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_azure_with_a_connection_string() {
    let server = azurite().await;
    let (front, _directory) = front(&server.url(), &["http/1.1"]).await;
    let (folder, escaped) = folder();
    let container_url = server.container_url("container").replace(&server.url(), &front.url());
    let connection_string = server.connection_string().replace(&server.url(), &front.url());
    let url = format!("{container_url}/{escaped}");
    let environment = [(azure::URL_VARIABLE, url.as_str()), (azure::CONNECTION_STRING, &connection_string)];
    run("azure", &front, &environment).await;
    assert_left_as_it_was_on_azure(&folder).await;
}

async fn assert_left_as_it_was_on_azure(folder: &str) {
    let container = format!("{}?{}", azurite().await.container_url("container"), azurite().await.sas("rl"));
    assert_left_as_it_was(&AzureStore::new(&container, AzureCredential::InUrl).expect("a store"), folder).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_gcs() {
    let server = FakeGcs::start(Options { limits_writes: true, ..Options::default() }).await;
    let (front, _directory) = front(&server.url(), &["h2", "http/1.1"]).await;
    let (folder, escaped) = folder();
    let url = format!("gs://{BUCKET}/{escaped}");
    run("gcs", &front, &[(gcs::URL_VARIABLE, &url), (gcs::EMULATOR, &front.url())]).await;
    let control = server.control();
    let store = GcsStore::new(server.client().await, BUCKET).with_control(move || control().build());
    assert_left_as_it_was(&store, &folder).await;
}
