//! The choice of an Entra ID credential from the environment, which `azure_identity` leaves to its users.

use std::fmt;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, Secret, TokenCredential, TokenRequestOptions};
use azure_core::error::{Error, ErrorKind};
use azure_identity::{
    ClientSecretCredential, DeveloperToolsCredential, ManagedIdentityCredential, ManagedIdentityCredentialOptions,
    UserAssignedId, WorkloadIdentityCredential,
};
use leaderelection::StoreError;

use super::credential::AzureCredential;
use super::error::misconfigured;
use crate::request::Words;
use crate::variable;

impl AzureCredential {
    /// The identity of this process, as its environment describes it:
    ///
    /// 1. a workload identity if `AZURE_FEDERATED_TOKEN_FILE` is set, as in a Kubernetes pod,
    /// 2. a service principal if `AZURE_CLIENT_SECRET`, `AZURE_CLIENT_ID` and `AZURE_TENANT_ID` are set,
    /// 3. a managed identity if `IDENTITY_ENDPOINT` is set, as in App Service and Container Apps,
    /// 4. otherwise the login of Azure's command-line tools or a virtual machine's managed identity: the first
    ///    one that works is kept.
    ///
    /// `AZURE_CLIENT_ID` chooses among several managed identities.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`](leaderelection::StoreErrorKind::Fatal) if a variable is missing or invalid.
    /// Nothing is sent.
    pub fn from_environment() -> Result<Self, StoreError> {
        let credential = credential().map_err(|error| {
            let unusable = misconfigured("the environment's Azure identity cannot be used".to_owned());
            match Words::of(&error.to_string()) {
                Some(words) => unusable.with_source(words),
                None => unusable,
            }
        })?;
        Ok(Self::EntraId(credential))
    }
}

fn credential() -> azure_core::Result<Arc<dyn TokenCredential>> {
    let client_id = variable("AZURE_CLIENT_ID");
    if variable("AZURE_FEDERATED_TOKEN_FILE").is_some() {
        WorkloadIdentityCredential::new(None)?;
        return Ok(Arc::new(WorkloadIdentity));
    }
    if let (Some(secret), Some(id), Some(tenant)) =
        (variable("AZURE_CLIENT_SECRET"), &client_id, variable("AZURE_TENANT_ID"))
    {
        return Ok(ClientSecretCredential::new(&tenant, id.clone(), Secret::new(secret), None)?);
    }
    let options = ManagedIdentityCredentialOptions {
        user_assigned_id: client_id.map(UserAssignedId::ClientId),
        ..Default::default()
    };
    let managed = ManagedIdentityCredential::new(Some(options))?;
    if variable("IDENTITY_ENDPOINT").is_some() {
        return Ok(managed);
    }
    Ok(Arc::new(FirstThatWorks {
        candidates: [DeveloperToolsCredential::new(None)?, managed],
        chosen: OnceLock::new(),
    }))
}

/// The workload identity of a pod. Each load reads the file of the token, which `azure_identity` reads at most every ten minutes.
#[derive(Debug)]
struct WorkloadIdentity;

#[async_trait]
impl TokenCredential for WorkloadIdentity {
    async fn get_token(
        &self,
        scopes: &[&str],
        options: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        WorkloadIdentityCredential::new(None)?.get_token(scopes, options).await
    }
}

struct FirstThatWorks {
    candidates: [Arc<dyn TokenCredential>; 2],
    chosen: OnceLock<Arc<dyn TokenCredential>>,
}

#[async_trait]
impl TokenCredential for FirstThatWorks {
    async fn get_token(
        &self,
        scopes: &[&str],
        options: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        if let Some(chosen) = self.chosen.get() {
            return chosen.get_token(scopes, options).await;
        }
        let mut problems = Vec::new();
        for candidate in &self.candidates {
            match candidate.get_token(scopes, options.clone()).await {
                Ok(token) => {
                    // Two concurrent calls choose the same candidate.
                    let _ = self.chosen.set(candidate.clone());
                    return Ok(token);
                }
                Err(error) => problems.push(error.to_string()),
            }
        }
        let advice = "neither the tools of Azure nor this machine's identity give a token: run az login, or set \
                      AZURE_STORAGE_CONNECTION_STRING, or AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET";
        Err(Error::with_message(ErrorKind::Credential, format!("{advice}: {}", problems.join("; "))))
    }
}

impl fmt::Debug for FirstThatWorks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FirstThatWorks").finish_non_exhaustive()
    }
}
