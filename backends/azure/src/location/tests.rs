use super::*;

fn parse(text: &str) -> Result<AzureLocation, String> {
    text.parse().map_err(|error: UrlError| error.to_string())
}

#[test]
fn a_wrong_blob_url_is_shown_a_right_one() {
    for (text, problem) in [
        ("az://", "no account"),
        ("az://se cret/container/blob", "the name of the account is invalid"),
        ("az://account", "no container"),
        ("az://account/se cret/blob", "the name of the container is invalid"),
        ("az://account/container", "no blob after the container, or no account before it"),
        ("az://account/container/", "no blob"),
        ("az://account/container/blob?secret", "a SAS without sig"),
        ("az://account/container/blob#secret", "%23"),
        ("https://user:secret@account.blob.core.windows.net/container/blob", "credentials"),
        ("https://account.blob.core.windows.net:secret/container/blob", "host"),
        ("https://[::1]/secret/container/blob", "host"),
        ("http://127.0.0.1:10000/secret/container", "no blob"),
        ("http://localhost", "no account"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(problem), "{text}: {error}");
        assert!(error.contains("looks like az://account/container/blob or https://"), "{text}: {error}");
        assert!(!error.contains("secret"), "{text}: {error}");
    }
}

#[test]
fn both_forms_name_the_same_blob() {
    let https = parse("https://account.blob.core.windows.net/container/locks/a%2Fb").unwrap();
    assert_eq!(https, parse("az://account/container/locks/a/b").unwrap());
    assert_eq!(https.key(), "locks/a/b");
}

/// The clouds of states, an account with a zone of its own, and a private endpoint.
#[tokio::test]
async fn blobs_of_other_clouds_keep_their_hosts() {
    for host in [
        "account.blob.core.chinacloudapi.cn",
        "account.blob.core.usgovcloudapi.net",
        "account.z21.blob.storage.azure.net",
        "account.privatelink.blob.core.windows.net",
    ] {
        let text = format!("https://{host}/container/locks/a?sv=1&sig=secret");
        let location = parse(&text).unwrap();
        assert_eq!(location.to_string(), format!("https://{host}/container/locks/a"));
        let endpoint = location.server().await.unwrap();
        assert_eq!(endpoint.as_deref(), Some(&*format!("https://{host}/container")));
    }
}

#[test]
fn a_sas_is_used_and_never_shown() {
    let location = parse("https://account.blob.core.windows.net/container/blob?sv=1&sig=secret").unwrap();
    assert_eq!(location.to_string(), "az://account/container/blob");
    let store = location.open().unwrap();
    for text in [format!("{location:?}"), format!("{store:?}")] {
        assert!(!text.contains("secret"), "{text}");
    }
}
