//! The credentials that requests to Azure carry.

use std::fmt;
use std::sync::Arc;

use azure_core::credentials::{Secret, TokenCredential};
use azure_core::http::{ClientOptions, Url};
use leaderelection::StoreError;

use super::error::misconfigured;
use super::outliving::Outliving;
use super::shared_key::SharedKeyPolicy;

/// The credential with which an [`AzureStore`](super::AzureStore) signs its requests.
///
/// ```
/// use leaderelection_backends::azure::AzureCredential;
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
    /// The SAS in the query of the container's URL, or no credential at all.
    InUrl,
}

impl AzureCredential {
    /// Adds the signing policy to `options`, or returns the token credential, which the client takes as a
    /// separate argument.
    pub(super) fn apply(
        self,
        url: &Url,
        options: &mut ClientOptions,
    ) -> Result<Option<Arc<dyn TokenCredential>>, StoreError> {
        if url.query().is_some() && !matches!(self, Self::InUrl) {
            let advice = "use AzureCredential::InUrl for a SAS, or leave the query out";
            return Err(misconfigured(format!("the container's URL has a query besides another credential; {advice}")));
        }
        match self {
            Self::EntraId(credential) => return Ok(Some(Arc::new(Outliving::new(credential)))),
            Self::AccountKey { account, key } => {
                options.per_try_policies.push(Arc::new(SharedKeyPolicy::new(account, &key)?));
            }
            Self::InUrl => {}
        }
        Ok(None)
    }
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
