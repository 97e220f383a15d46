//! Whose a token is, as an API server knows it.

use std::fmt;
use std::time::Duration;

use http::Method;
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_store_support::request::answer::{UNREADABLE_ANSWER, with_code};
use leaderelection_store_support::request::{Words, bounded, failed};
use serde_json::json;

use crate::error;
use crate::location::cluster_of_environment;
use crate::server::{self, Server};

/// The version of the API that has TokenReviews.
const REVIEWS: &str = "authentication.k8s.io/v1";

/// The subject of errors.
const OBJECT: &str = "the TokenReview of the cluster";

/// Asks an API server who owns a token, by a TokenReview. The asker needs the ClusterRole `system:auth-delegator`.
#[derive(Clone)]
pub struct TokenReviewer {
    reviews: Server,
    timeout: Duration,
}

impl fmt::Debug for TokenReviewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenReviewer").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl TokenReviewer {
    /// Makes a reviewer of the cluster that [`LeaseLocation::open`](crate::LeaseLocation::open) takes. A review gets no more time
    /// than `timeout`.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`] if there is no configuration of a cluster, or if it is invalid.
    pub async fn from_env(timeout: Duration) -> Result<Self, StoreError> {
        let (config, again) = cluster_of_environment().await?;
        let namespace = config.default_namespace.clone();
        let connection = server::connection(config, again).map_err(|error| error::no_client(&namespace, &error))?;
        let mut reviews = Server::of_cluster(connection, REVIEWS, "tokenreviews");
        reviews.request_timeout = timeout;
        Ok(Self { reviews, timeout })
    }

    /// Returns the name of the user whose token this is; `None` if it is nobody's, or for none of these audiences. Without an
    /// audience, it has to be for the API server itself.
    ///
    /// # Errors
    ///
    /// If the API server does not answer, or refuses the review.
    pub async fn user_of(&self, token: &str, audiences: &[String]) -> Result<Option<String>, StoreError> {
        let spec = json!({"token": token, "audiences": audiences});
        let review = json!({"apiVersion": REVIEWS, "kind": "TokenReview", "spec": spec});
        let answer = bounded(self.timeout, OBJECT, self.reviews.send(Method::POST, "", Some(review), OBJECT)).await?;
        let review = answer.accepted().map_err(|(status, said)| {
            let verdict = match status {
                403 => {
                    (StoreErrorKind::Fatal, "access denied; bind the ClusterRole system:auth-delegator to this server")
                }
                401 => (
                    StoreErrorKind::Fatal,
                    "access denied because the credentials are wrong or have expired; renew them",
                ),
                _ => (StoreErrorKind::Rejected, "the API server has not reviewed the token; check its log"),
            };
            failed(OBJECT, with_code(verdict, status, ""), Words::of(&said))
        })?;
        let status = &review["status"];
        if status["authenticated"] != true {
            // The API server leaves out what is false.
            return if status.is_object() { Ok(None) } else { Err(failed(OBJECT, UNREADABLE_ANSWER, None)) };
        }
        // An API server that knows no audiences names none.
        let confirmed = status["audiences"].as_array();
        let is_for = |audience: &String| confirmed.is_some_and(|all| all.iter().any(|one| one == audience));
        let is_ours = audiences.is_empty() || audiences.iter().any(is_for);
        let name = status["user"]["username"].as_str().filter(|name| is_ours && !name.is_empty());
        Ok(name.map(str::to_owned))
    }
}
