//! The store for Azure: the answers of Azure's servers, and the behaviour of this store alone.

mod answers;
mod attempts;
mod requests;
mod secrets;
mod server;
mod tokens;

use azure_core::credentials::Secret;
use azure_core::http::ClientOptions;
use leaderelection_backends::azure::{AzureCredential, AzureStore};
use leaderelection_integration_tests::servers::scripted::Answer;

use crate::every_store::{CloudStore, SHORT};

/// A secret, in base64.
const KEY: &str = "dGhpcyBpcyBzZWNyZXQ=";

fn account_key() -> AzureCredential {
    AzureCredential::AccountKey { account: "account".to_owned(), key: Secret::new(KEY) }
}

fn store(endpoint: &str, options: ClientOptions) -> AzureStore {
    AzureStore::with_options(&format!("{endpoint}/container"), account_key(), options).expect("a store")
}

/// A blob, read by a request for a range.
fn blob(etag: &str, body: impl Into<Vec<u8>>, total: usize) -> Answer {
    let body = body.into();
    let range = format!("bytes 0-{}/{total}", body.len() - 1);
    Answer::new(206).header("etag", etag).header("content-range", range).body(body)
}

/// An error in Azure's form. An empty `code` means an answer without a body.
fn error(status: u16, code: &str) -> Answer {
    let answer = Answer::new(status).header("content-type", "application/xml");
    if code.is_empty() {
        return answer;
    }
    answer
        .header("x-ms-error-code", code)
        .body(format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>said the server</Message></Error>"))
}

impl CloudStore for AzureStore {
    const UNREACHABLE: &'static str =
        "cannot connect; check the network, and if it has never answered, the account's name";
    const IMPOSSIBLE_KEYS: &'static [&'static str] = &["", ".", "..", "a\tb", "a\nb", "a\rb"];

    async fn on(endpoint: &str) -> Self {
        store(endpoint, ClientOptions::default())
    }

    async fn on_retrying_clients(endpoint: &str) -> Vec<Self> {
        attempts::retrying_options().map(|options| store(endpoint, options)).into()
    }

    fn in_a_hurry(self) -> Self {
        self.with_request_timeout(SHORT)
    }

    fn object(body: Vec<u8>) -> Answer {
        let total = body.len();
        blob("\"etag\"", body, total)
    }

    fn written() -> Answer {
        Answer::new(201).header("etag", "\"new\"")
    }

    fn refusals() -> Vec<Answer> {
        let challenge = "Bearer authorization_uri=http://127.0.0.1:9";
        let denied = Answer::new(401).header("www-authenticate", challenge);
        vec![error(503, "ServerBusy"), error(429, "ServerBusy"), denied]
    }
}
