//! Connection strings, as the portal and the emulator give them.
//!
//! <https://learn.microsoft.com/azure/storage/common/storage-configure-connection-string>

use std::collections::BTreeMap;

use azure_core::credentials::Secret;
use leaderelection::StoreError;

use crate::credential::AzureCredential;
use crate::error::misconfigured;

/// The emulator's account, which is the same everywhere and is not secret:
/// <https://learn.microsoft.com/azure/storage/common/storage-use-azurite#well-known-storage-account-and-key>
const EMULATOR: &str = "AccountName=devstoreaccount1;\
    AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;\
    BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1";

const EXAMPLE: &str = "DefaultEndpointsProtocol=https;AccountName=…;AccountKey=…;EndpointSuffix=core.windows.net";

/// Returns the URL of `container` and the credential that signs requests to it.
pub(crate) fn parse(text: &str, container: &str) -> Result<(String, AzureCredential), StoreError> {
    let wrong =
        |problem: String| misconfigured(format!("the connection string {problem}; a valid one looks like {EXAMPLE}"));
    let mut settings = settings(text).map_err(wrong)?;
    if settings.get("usedevelopmentstorage").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        settings = self::settings(EMULATOR).map_err(wrong)?;
    }
    let setting = |name: &str| settings.get(&name.to_ascii_lowercase()).copied().filter(|value| !value.is_empty());

    let endpoint = match (setting("BlobEndpoint"), setting("AccountName")) {
        (Some(endpoint), _) => endpoint.trim_end_matches('/').to_owned(),
        (None, Some(account)) => {
            let protocol = setting("DefaultEndpointsProtocol").unwrap_or("https");
            let suffix = setting("EndpointSuffix").unwrap_or("core.windows.net");
            format!("{protocol}://{account}.blob.{suffix}")
        }
        (None, None) => return Err(wrong("has neither AccountName nor BlobEndpoint".to_owned())),
    };
    let url = format!("{endpoint}/{container}");
    match (setting("SharedAccessSignature"), setting("AccountName"), setting("AccountKey")) {
        (Some(sas), _, None) => Ok((format!("{url}?{}", sas.trim_start_matches('?')), AzureCredential::InUrl)),
        (None, Some(account), Some(key)) => {
            let key = Secret::new(key.to_owned());
            Ok((url, AzureCredential::AccountKey { account: account.to_owned(), key }))
        }
        (None, None, Some(_)) => Err(wrong("has an AccountKey but no AccountName".to_owned())),
        (Some(_), _, Some(_)) => Err(wrong("has both an AccountKey and a SharedAccessSignature".to_owned())),
        (None, _, None) => Err(wrong("has neither AccountKey nor SharedAccessSignature".to_owned())),
    }
}

/// Splits a connection string into its settings, with their names in lower case.
fn settings(text: &str) -> Result<BTreeMap<String, &str>, String> {
    let mut settings = BTreeMap::new();
    for (index, part) in text.split(';').map(str::trim).enumerate().filter(|(_, part)| !part.is_empty()) {
        // Keys and signatures end in "=".
        let Some((name, value)) = part.split_once('=') else {
            return Err(format!("has a part without \"=\", number {}", index + 1));
        };
        settings.insert(name.trim().to_ascii_lowercase(), value.trim());
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> String {
        parse(text, "container").unwrap().0
    }

    #[test]
    fn finds_the_endpoint_and_the_credential() {
        let (url, credential) = parse("AccountName=name;AccountKey=c2VjcmV0==", "container").unwrap();
        assert_eq!(url, "https://name.blob.core.windows.net/container");
        assert!(matches!(&credential, AzureCredential::AccountKey { account, key }
            if account == "name" && key.secret() == "c2VjcmV0=="));
        assert!(!format!("{credential:?}").contains("c2VjcmV0"));
    }

    #[test]
    fn reads_every_form() {
        let china = "DefaultEndpointsProtocol=http;AccountName=n;AccountKey=a;EndpointSuffix=core.chinacloudapi.cn";
        assert_eq!(url(china), "http://n.blob.core.chinacloudapi.cn/container");
        assert_eq!(url("UseDevelopmentStorage=true"), "http://127.0.0.1:10000/devstoreaccount1/container");
        let custom = "blobendpoint = http://10.0.0.1:1/n/ ; AccountName=n;AccountKey=a;";
        assert_eq!(url(custom), "http://10.0.0.1:1/n/container");
        let sas = "BlobEndpoint=https://n.blob.core.windows.net;SharedAccessSignature=?sv=1&sig=a%3D";
        assert_eq!(url(sas), "https://n.blob.core.windows.net/container?sv=1&sig=a%3D");
    }

    #[test]
    fn a_wrong_one_is_shown_a_right_one_and_never_repeated() {
        for (text, problem) in [
            ("", "neither AccountName nor BlobEndpoint"),
            ("secret", "without \"=\", number 1"),
            ("AccountName=secret", "neither AccountKey nor"),
            ("BlobEndpoint=https://secret;AccountKey=secret", "no AccountName"),
            ("AccountName=secret;AccountKey=secret;SharedAccessSignature=secret", "both"),
        ] {
            let error = parse(text, "container").unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
            assert!(error.contains("a valid one looks like"), "{text}: {error}");
            assert!(!error.contains("secret"), "{text}: {error}");
        }
    }
}
