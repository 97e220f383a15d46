//! The credentials that requests to Azure carry.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use azure_core::credentials::{Secret, TokenCredential};
use azure_core::http::{ClientOptions, Url};
use leaderelection::StoreError;

use crate::error::misconfigured;
use crate::shared_key::SharedKeyPolicy;
use crate::tokens::Tokens;

/// The credential with which an [`AzureStore`](crate::AzureStore) signs its requests.
///
/// ```
/// use leaderelection_azure::AzureCredential;
///
/// let tools = AzureCredential::EntraId(azure_identity::DeveloperToolsCredential::new(None)?);
/// let machine = AzureCredential::EntraId(azure_identity::ManagedIdentityCredential::new(None)?);
/// # Ok::<(), azure_core::Error>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub enum AzureCredential {
    /// Tokens of Entra ID, from any credential of the `azure_identity` crate: for a managed identity, a
    /// workload identity, a service principal or a developer. The URL must start with `https`.
    EntraId(Arc<dyn TokenCredential>),
    /// One of the storage account's two keys, in base64 as the portal shows it.
    AccountKey {
        /// The storage account's name.
        account: String,
        /// The key. The key grants access to everything in the account.
        key: Secret,
    },
    /// The SAS in the query of the container's URL, or no credential at all. A SAS is a secret in the URL, so it is
    /// refused over plain `http`, but to a host of this machine, such as an emulator.
    InUrl,
}

impl AzureCredential {
    /// Adds the signing policy to `options`, or returns the token credential, which the client takes as a
    /// separate argument.
    pub(crate) fn apply(
        self,
        url: &Url,
        options: &mut ClientOptions,
    ) -> Result<Option<Arc<dyn TokenCredential>>, StoreError> {
        if url.query().is_some() && !matches!(self, Self::InUrl) {
            let advice = "use AzureCredential::InUrl for a SAS, or leave the query out";
            return Err(misconfigured(format!(
                "the container's URL has a query, and another credential is given; {advice}"
            )));
        }
        if url.query().is_some() && url.scheme() == "http" && !is_this_machine(url) {
            let advice = "begin the URL with https://; without https, only a host of this machine gets a SAS";
            return Err(misconfigured(format!("everybody on the network could read the SAS in transit; {advice}")));
        }
        match self {
            Self::EntraId(credential) => {
                let tokens = Arc::new(Tokens::of(credential));
                // Around the SDK's own policy, which keeps a token until it sees the refusal.
                options.per_call_policies.push(tokens.clone());
                return Ok(Some(tokens));
            }
            Self::AccountKey { account, key } => {
                options.per_try_policies.push(Arc::new(SharedKeyPolicy::new(account, &key)?));
            }
            Self::InUrl => {}
        }
        Ok(None)
    }
}

/// Returns `true` if what is sent to the host of `url` stays on this machine.
fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

// Written by hand, because a user's own credential may print a secret.
impl fmt::Debug for AzureCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EntraId(_) => f.debug_tuple("EntraId").finish_non_exhaustive(),
            Self::AccountKey { account, .. } => {
                f.debug_struct("AccountKey").field("account", account).finish_non_exhaustive()
            }
            Self::InUrl => f.write_str("InUrl"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sas_goes_over_plain_http_to_this_machine_only() {
        for (url, is_taken) in [
            ("https://name.blob.core.windows.net/container?sig=hidden", true),
            ("http://127.0.0.1:10000/name/container?sig=hidden", true),
            ("http://[::1]:10000/name/container?sig=hidden", true),
            ("http://localhost/name/container?sig=hidden", true),
            ("http://name.blob.core.windows.net/container", true),
            ("http://name.blob.core.windows.net/container?sig=hidden", false),
            ("http://10.0.0.1/name/container?sig=hidden", false),
            ("http://localhost.example/container?sig=hidden", false),
        ] {
            let applied = AzureCredential::InUrl.apply(&url.parse().unwrap(), &mut ClientOptions::default());
            assert_eq!(applied.is_ok(), is_taken, "{url}");
            let error = applied.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(is_taken || error.contains("begin the URL with https://") && !error.contains("hidden"), "{error}");
        }
    }
}
