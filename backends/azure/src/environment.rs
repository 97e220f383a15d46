//! The choice of an Entra ID credential from the environment, which `azure_identity` leaves to its users.

use std::fmt;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, Secret, TokenCredential, TokenRequestOptions};
use azure_core::error::{Error, ErrorKind};
use azure_core::http::{ClientOptions, Transport};
use azure_identity::{
    ClientAssertionCredentialOptions, ClientSecretCredential, ClientSecretCredentialOptions, DeveloperToolsCredential,
    ManagedIdentityCredential, ManagedIdentityCredentialOptions, UserAssignedId, WorkloadIdentityCredential,
    WorkloadIdentityCredentialOptions,
};
use leaderelection::StoreError;
use leaderelection_store_support::ca::Authorities;
use leaderelection_store_support::request::Words;
use leaderelection_store_support::variable;

use crate::credential::AzureCredential;
use crate::error::{NO_LOGIN, misconfigured};
use crate::transport;

/// The service of tokens, unless `AZURE_AUTHORITY_HOST` names another.
const TOKENS: &str = "https://login.microsoftonline.com";

impl AzureCredential {
    /// The identity of this process, as its environment describes it:
    ///
    /// 1. a workload identity if `AZURE_FEDERATED_TOKEN_FILE` is set, as in a Kubernetes pod,
    /// 2. a service principal if `AZURE_CLIENT_SECRET` is set, which needs `AZURE_CLIENT_ID` and `AZURE_TENANT_ID`,
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
        Self::from_environment_trusting(None)
    }

    /// Chooses the identity as [`from_environment`](Self::from_environment) does. The service of tokens may have a certificate of
    /// these authorities, too.
    pub(crate) fn from_environment_trusting(authorities: Option<&Authorities>) -> Result<Self, StoreError> {
        let transport = authorities.map(|_| transport::usual(TOKENS, authorities)).transpose()?;
        let credential = credential(transport).map_err(|error| {
            let unusable = misconfigured(
                "the environment's Azure identity cannot be used; set AZURE_CLIENT_ID and AZURE_TENANT_ID, and AZURE_CLIENT_SECRET or \
                 AZURE_FEDERATED_TOKEN_FILE, or else AZURE_STORAGE_CONNECTION_STRING"
                    .to_owned(),
            );
            match Words::of(&error.to_string()) {
                Some(words) => unusable.with_source(words),
                None => unusable,
            }
        })?;
        Ok(Self::EntraId(credential))
    }
}

fn credential(transport: Option<Transport>) -> azure_core::Result<Arc<dyn TokenCredential>> {
    let client_options = move || ClientOptions { transport: transport.clone(), ..Default::default() };
    let client_id = variable("AZURE_CLIENT_ID");
    if variable("AZURE_FEDERATED_TOKEN_FILE").is_some() {
        return Anew::by(move || {
            let credential_options = ClientAssertionCredentialOptions { client_options: client_options() };
            let options = WorkloadIdentityCredentialOptions { credential_options, ..Default::default() };
            Ok(WorkloadIdentityCredential::new(Some(options))?)
        });
    }
    if let Some(secret) = variable("AZURE_CLIENT_SECRET") {
        let with = |name| {
            let missing = || format!("AZURE_CLIENT_SECRET is set, and {name} is not");
            variable(name).ok_or_else(|| Error::with_message(ErrorKind::Credential, missing()))
        };
        let (id, tenant, secret) = (with("AZURE_CLIENT_ID")?, with("AZURE_TENANT_ID")?, Secret::new(secret));
        return Anew::by(move || {
            let options = ClientSecretCredentialOptions { client_options: client_options() };
            Ok(ClientSecretCredential::new(&tenant, id.clone(), secret.clone(), Some(options))?)
        });
    }
    let managed = Anew::by(move || {
        let options = ManagedIdentityCredentialOptions {
            user_assigned_id: client_id.clone().map(UserAssignedId::ClientId),
            client_options: client_options(),
        };
        Ok(ManagedIdentityCredential::new(Some(options))?)
    })?;
    if variable("IDENTITY_ENDPOINT").is_some() {
        return Ok(managed);
    }
    let tools = Anew::by(|| Ok(DeveloperToolsCredential::new(None)?))?;
    Ok(Arc::new(FirstThatWorks { candidates: [tools, managed], chosen: OnceLock::new() }))
}

/// A credential that is made for each load. Those of `azure_identity` keep a token until five minutes before its end, whatever
/// the service says about it, and read a file at most every ten minutes.
struct Anew<F>(F);

impl<F> Anew<F>
where
    F: Fn() -> azure_core::Result<Arc<dyn TokenCredential>> + Send + Sync + 'static,
{
    /// Makes one at once, so that wrong settings are told.
    fn by(make: F) -> azure_core::Result<Arc<dyn TokenCredential>> {
        make()?;
        Ok(Arc::new(Self(make)))
    }
}

#[async_trait]
impl<F> TokenCredential for Anew<F>
where
    F: Fn() -> azure_core::Result<Arc<dyn TokenCredential>> + Send + Sync + 'static,
{
    async fn get_token(
        &self,
        scopes: &[&str],
        options: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        (self.0)()?.get_token(scopes, options).await
    }
}

// Written by hand, because the settings may have a secret.
impl<F> fmt::Debug for Anew<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Anew").finish_non_exhaustive()
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
        Err(Error::with_message(ErrorKind::Credential, format!("{NO_LOGIN}: {}", problems.join("; "))))
    }
}

impl fmt::Debug for FirstThatWorks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FirstThatWorks").finish_non_exhaustive()
    }
}
