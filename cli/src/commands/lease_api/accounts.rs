//! The service accounts of a cluster: who they are, as the cluster says or as its issuer has signed.

use std::path::PathBuf;

use leaderelection::causes::with_causes;
use leaderelection_backends::kubernetes::TokenReviewer;

use super::answers::{Answers, PATIENCE};
use super::issuer::Issuer;
use crate::exit::Failure;

/// Whose tokens are accepted beside those of the file.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct AccountArgs {
    /// Accept service accounts of a cluster
    ///
    /// A token that is not in --token-file is sent to the cluster of KUBECONFIG or of the pod for review. The account that
    /// lease-api uses there needs the ClusterRole system:auth-delegator. Grant the service accounts rights in --token-file: `system:serviceaccount:NAMESPACE:NAME
    /// web,batch:read`, or `system:serviceaccounts:NAMESPACE web` for all accounts of a namespace.
    #[arg(long, requires = "token_file")]
    token_review: bool,
    /// Accept service accounts of this issuer
    ///
    /// The HTTPS URL of an OIDC issuer, such as that of a cluster. Its keys are fetched from there. Grant the
    /// accounts rights in --token-file: see --token-review.
    #[arg(long, value_name = "URL", requires_all = ["token_file", "token_audience"])]
    oidc_issuer_url: Option<String>,
    /// Trust this CA for --oidc-issuer-url
    ///
    /// A PEM file. The default is the authorities of this system.
    #[arg(long, value_name = "PATH", requires = "oidc_issuer_url", hide_short_help = true)]
    oidc_ca_file: Option<PathBuf>,
    /// Require this audience in account tokens
    ///
    /// A service account's token must be for this audience. Without this option, --token-review accepts tokens for the API
    /// server, as pods have them by default.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    token_audience: Option<String>,
}

impl AccountArgs {
    /// Returns who accepts service accounts, if anybody does.
    pub(super) async fn open(self) -> Result<Option<Accounts>, Failure> {
        let issuer = match (self.oidc_issuer_url, &self.token_audience) {
            (Some(url), Some(audience)) => Some(Issuer::new(url, audience.clone(), self.oidc_ca_file.as_deref())?),
            _ => None,
        };
        let reviewer = match self.token_review {
            true => Some(TokenReviewer::from_env(PATIENCE).await?),
            false => None,
        };
        let audiences = Vec::from_iter(self.token_audience);
        let accounts = Accounts { issuer, reviewer, audiences, answers: Answers::default() };
        Ok(Some(accounts).filter(|accounts| accounts.issuer.is_some() || accounts.reviewer.is_some()))
    }
}

/// Those who know service accounts.
#[derive(Debug)]
pub(super) struct Accounts {
    issuer: Option<Issuer>,
    reviewer: Option<TokenReviewer>,
    audiences: Vec<String>,
    answers: Answers,
}

impl Accounts {
    /// Returns the name of the service account whose token is shown; `None` if it is nobody's.
    ///
    /// # Errors
    ///
    /// The problem, if nobody knows.
    pub(super) async fn name_of(&self, shown: Option<Vec<u8>>) -> Result<Option<String>, String> {
        // Another token is none of an account, and no secret of somebody's own file goes to the cluster.
        let token = shown.and_then(|shown| String::from_utf8(shown).ok()).filter(|token| is_jwt(token));
        match token {
            Some(token) => self.answers.of(&token, self.review(&token)).await,
            None => Ok(None),
        }
    }

    async fn review(&self, token: &str) -> Result<Option<String>, String> {
        let signed = match &self.issuer {
            Some(issuer) => issuer.subject_of(token).await,
            None => Ok(None),
        };
        // What the issuer's keys do not show, the cluster may know.
        let reviewer = match (&self.reviewer, signed) {
            (Some(reviewer), Ok(None) | Err(_)) => reviewer,
            (_, signed) => return signed,
        };
        reviewer.user_of(token, &self.audiences).await.map_err(|error| with_causes(&error))
    }
}

fn is_jwt(token: &str) -> bool {
    token.starts_with("eyJ") && token.bytes().filter(|byte| *byte == b'.').count() == 2
}
