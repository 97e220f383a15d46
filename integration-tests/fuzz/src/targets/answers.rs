//! Answers of object stores, through the SDK of each: a line with the status, one for each header, an empty one, and the body.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use azure_core::credentials::Secret;
use azure_core::http::ClientOptions;
use google_cloud_auth::credentials::anonymous;
use google_cloud_storage::client::Storage;
use leaderelection::StoreError;
use leaderelection::causes::with_causes;
use leaderelection::implement::{ConditionalStore, MAX_BODY_BYTES, Precondition, Version};
use leaderelection_backends::azure::{AzureCredential, AzureStore};
use leaderelection_backends::gcs::GcsStore;
use leaderelection_backends::s3::S3Store;
use leaderelection_serving::sockets::Serving;

use crate::runtime::wait;
use crate::target::uncounted;

/// The most characters that an error quotes or says, far above what a person reads.
const LONGEST: usize = 1_000;

/// Headers of the connection, which the server sets, and the way to another server.
const NOT_OURS: [&str; 4] = ["connection", "content-length", "location", "transfer-encoding"];

type Answer = Arc<Mutex<(StatusCode, HeaderMap, Bytes)>>;

struct World<S> {
    store: S,
    answer: Answer,
    _server: Serving,
}

// Each is on the thread of its target, so that its runtime drives the server too.
thread_local! {
    static S3: World<S3Store> = uncounted(|| wait(World::begin(s3_store)));
    static GCS: World<GcsStore> = uncounted(|| wait(World::begin(gcs_store)));
    static AZURE: World<AzureStore> = uncounted(|| wait(World::begin(azure_store)));
}

pub(super) fn s3(input: &[u8]) {
    S3.with(|world| {
        world.set(input);
        wait(world.use_object());
        // One page, because this server has the same one forever.
        wait(async { judge(world.store.list_page("", None, None).await) });
    });
}

/// Listings speak another protocol.
pub(super) fn gcs(input: &[u8]) {
    GCS.with(|world| {
        world.set(input);
        wait(world.use_object());
    });
}

pub(super) fn azure(input: &[u8]) {
    AZURE.with(|world| {
        world.set(input);
        wait(world.use_object());
        // One page, because this server has the same one forever.
        wait(async { judge(world.store.list_page("", None, None).await) });
    });
}

impl<S: ConditionalStore> World<S> {
    async fn begin(store: impl AsyncFnOnce(String) -> S) -> Self {
        let answer = Answer::default();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let routes = Router::new().fallback({
            let answer = Arc::clone(&answer);
            async move || answer.lock().unwrap().clone()
        });
        let server = Serving::start(listener, None, routes, Duration::from_secs(60)).unwrap();
        let store = store(format!("http://{}", server.address().unwrap())).await;
        Self { store, answer, _server: server }
    }

    fn set(&self, input: &[u8]) {
        let end = input.windows(2).position(|bytes| bytes == b"\n\n").unwrap_or(input.len());
        let (head, body) = (&input[..end], input.get(end + 2..).unwrap_or_default());
        let mut lines = head.split(|byte| *byte == b'\n');
        let status = lines.next().and_then(|line| StatusCode::from_bytes(line).ok()).unwrap_or(StatusCode::OK);
        // Answers below 200 are none.
        let status = if status.as_u16() < 200 { StatusCode::OK } else { status };
        let headers = lines.filter_map(header).filter(|(name, _)| !NOT_OURS.contains(&name.as_str())).collect();
        *self.answer.lock().unwrap() = (status, headers, Bytes::copy_from_slice(body));
    }

    async fn use_object(&self) {
        if let Some(found) = judge(self.store.get("key").await).flatten() {
            assert!(found.body.len() <= MAX_BODY_BYTES, "{} bytes", found.body.len());
        }
        for precondition in [Precondition::Absent, Precondition::Matches(Version::new("7"))] {
            judge(self.store.put("key", Bytes::from_static(b"written"), &precondition).await);
        }
        judge(self.store.delete("key", Some(&Version::new("7"))).await);
    }
}

fn header(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_at(line.iter().position(|byte| *byte == b':')?);
    Some((HeaderName::from_bytes(name).ok()?, HeaderValue::from_bytes(value[1..].trim_ascii()).ok()?))
}

/// An error says on one line what a person needs, whatever the server said.
fn judge<T>(answer: Result<T, StoreError>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(error) => {
            let words = with_causes(&error);
            assert!(words.chars().count() <= LONGEST && !words.contains(char::is_control), "{words:?}");
            None
        }
    }
}

async fn s3_store(endpoint: String) -> S3Store {
    let config = aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-central-1"))
        .endpoint_url(endpoint)
        .force_path_style(true)
        .credentials_provider(Credentials::new("id", "secret", None, None, "test"));
    S3Store::new(aws_sdk_s3::Client::from_conf(config.build()), "bucket")
}

async fn gcs_store(endpoint: String) -> GcsStore {
    let client = Storage::builder().with_endpoint(endpoint).with_credentials(anonymous::Builder::new().build());
    GcsStore::new(client.build().await.unwrap(), "bucket")
}

async fn azure_store(endpoint: String) -> AzureStore {
    let key = AzureCredential::AccountKey { account: "account".to_owned(), key: Secret::new("c2VjcmV0") };
    AzureStore::with_options(&format!("{endpoint}/container"), key, ClientOptions::default()).unwrap()
}
