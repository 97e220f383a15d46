//! Keys and SAS tokens appear in no output.

use std::error::Error as StdError;

use azure_core::http::ClientOptions;
use leaderelection::StoreErrorKind;
use leaderelection::implement::ConditionalStore as _;
use leaderelection_backends::azure::{AzureCredential, AzureStore};
use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer, Step};
use leaderelection_test_support::logs::everything_of;

use super::{KEY, account_key, store};
use crate::calls::CALLS;
use crate::every_store::SHORT;

const SIGNATURE: &str = "c2VjcmV0IHNpZ25hdHVyZQ";

fn sas_store(endpoint: &str) -> AzureStore {
    let url = format!("{endpoint}/container?sv=2022-11-02&sp=rw&sig={SIGNATURE}");
    AzureStore::new(&url, AzureCredential::InUrl).expect("a store")
}

/// Returns every text that a program may print of an error.
fn all_of(error: &(dyn StdError + 'static)) -> String {
    let mut text = format!("{error:?} {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(" {cause:?} {cause}"));
        source = cause.source();
    }
    text
}

fn assert_no_secret(text: &str) {
    for secret in [KEY, SIGNATURE, "SharedKey"] {
        assert!(!text.contains(secret), "{secret} shows in {text}");
    }
}

fn faults() -> Vec<Step> {
    // The service repeats the signature in this way when the signature is wrong.
    let repeating = format!("<Error><Code>AuthenticationFailed</Code><Detail>{SIGNATURE} {KEY}</Detail></Error>");
    vec![
        Answer::new(403).header("x-ms-error-code", "AuthenticationFailed").body(repeating).into(),
        Answer::new(500).into(),
        Answer::new(200).header("etag", "\"etag\"").header("content-range", "nonsense").body("<").into(),
        Step::Truncated { answer: Answer::new(200).header("etag", "\"etag\"").body("{}"), missing: 1 },
        Step::Close,
        Step::Reset,
        Step::Hang,
    ]
}

#[tokio::test]
async fn no_error_shows_a_secret() {
    for fault in faults() {
        for call in CALLS {
            let server = ScriptedServer::start([fault.clone(), fault.clone()]).await;
            for store in [sas_store(&server.url()), store(&server.url(), ClientOptions::default())] {
                let store = store.with_request_timeout(SHORT);
                if let Err(error) = call.on(&store).await {
                    assert_no_secret(&all_of(&error));
                }
            }
        }
    }
    for store in [sas_store("http://127.0.0.1:1"), store("http://127.0.0.1:1", ClientOptions::default())] {
        let error = store.get("key").await.expect_err("nobody listens");
        assert_eq!(error.kind(), StoreErrorKind::Rejected);
        assert_no_secret(&all_of(&error));
    }
}

#[test]
fn nothing_prints_a_secret() {
    let sas = sas_store("https://account.blob.core.windows.net");
    let text = format!("{sas:?}");
    assert_eq!(
        text,
        r#"AzureStore { container: "https://account.blob.core.windows.net/container", request_timeout: 10s, .. }"#
    );
    assert_eq!(sas.describe("key"), "https://account.blob.core.windows.net/container/key");
    assert_no_secret(&format!("{:?}", store("https://account.blob.core.windows.net", ClientOptions::default())));
    assert_eq!(format!("{:?}", account_key()), r#"AccountKey { account: "account", .. }"#);
}

#[test]
fn a_wrong_configuration_is_not_repeated() {
    let in_url = || AzureCredential::InUrl;
    for (url, credential) in [
        (SIGNATURE.to_owned(), in_url()),
        (format!("ftp://host/container?sig={SIGNATURE}"), in_url()),
        (format!("https://host?sig={SIGNATURE}"), in_url()),
        (format!("https://{SIGNATURE}:{SIGNATURE}@host/container"), in_url()),
        (format!("https://host/container#{SIGNATURE}"), in_url()),
        (format!("https://host/container?sig={SIGNATURE}"), account_key()),
        (format!("data:{SIGNATURE}"), in_url()),
    ] {
        let error = AzureStore::new(&url, credential).expect_err("wrong");
        assert_eq!(error.kind(), StoreErrorKind::Fatal, "{url}");
        assert_no_secret(&all_of(&error));
    }
}

#[test]
fn no_log_shows_a_secret() {
    let text = everything_of(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            for call in CALLS {
                for fault in [Answer::new(403).into(), Step::Close] {
                    let server = ScriptedServer::start([fault.clone(), fault]).await;
                    for store in [sas_store(&server.url()), store(&server.url(), ClientOptions::default())] {
                        call.on(&store).await.expect_err("refused");
                    }
                }
            }
        });
    });
    assert!(text.contains("REDACTED"), "the SDK's logs are not captured: {text}");
    assert_no_secret(&text);
}
