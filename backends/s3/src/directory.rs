//! Directory buckets, which hold the storage class S3 Express One Zone: how they list, and the sessions of their requests.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, future};
use aws_sdk_s3::Client;
use leaderelection::StoreErrorKind;
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection_store_support::request::fresh::Fresh;
use leaderelection_store_support::request::kept::{Broken, Kept, Loaded};
use leaderelection_store_support::request::{Operation, bounded};

use crate::date::AnswerDate;
use crate::error::{self, NoSession, Sender};
use crate::identity::Identities;

/// The end of the name of a directory bucket, by which Amazon's clients know it.
const SUFFIX: &str = "--x-s3";

/// The longest time for the answer to the opening of a session.
const LIMIT: Duration = Duration::from_secs(5);

/// Returns `true` if this is the name of a directory bucket.
pub(crate) fn is_directory(bucket: &str) -> bool {
    bucket.ends_with(SUFFIX)
}

/// Returns the longest prefix of `prefix` that a directory bucket lists: up to the last `/`. The empty one lists all.
pub(crate) fn listed_by(prefix: &str) -> &str {
    prefix.rfind('/').map_or("", |last| &prefix[..=last])
}

/// The session of one bucket: credentials that sign its requests, for five minutes on Amazon S3. The SDK's own sessions are
/// opened by the first request after their end, and anew if that request is given up.
#[derive(Clone)]
pub(crate) struct Sessions(Arc<Inner>);

struct Inner {
    /// A client with the user's own credentials, which sign nothing but the opening of sessions.
    client: Fresh<Client>,
    /// The keeper of these.
    identities: Identities,
    bucket: String,
    kept: Kept<Credentials, NoSession>,
}

impl Sessions {
    pub(crate) fn new(client: Fresh<Client>, identities: Identities, bucket: &str) -> Self {
        let kept = Kept::new(format!("the session of the bucket {bucket}"));
        Self(Arc::new(Inner { client, identities, bucket: bucket.to_owned(), kept }))
    }

    /// Gives up the session after the store has refused it, so that the next request opens another.
    pub(crate) fn refused(&self) {
        self.0.kept.refused();
    }

    async fn opened(&self) -> Result<Loaded<Credentials>, NoSession> {
        let name = format!("the session of the bucket {}", self.0.bucket);
        let (sent, date) = (SystemClock.now(), AnswerDate::default());
        let answer = self.0.client.ask(&name, async |client| {
            let request = client.create_session().bucket(&self.0.bucket).customize();
            request.interceptor(date.clone()).send().await.map_err(|error| {
                let has_region = client.config().region().is_some();
                let is_loaded_anew = error::doubts_credentials(&error) && self.0.identities.refused();
                let sender =
                    Sender { has_region, asks_machine: false, endpoint: None, by_session: false, is_loaded_anew };
                error::explain(Operation::Session, &name, error, &sender)
            })
        });
        let parts = bounded(LIMIT, &name, answer).await.map_err(NoSession::of)?.credentials.and_then(|parts| {
            let until = SystemTime::try_from(*parts.expiration()).ok()?;
            // By the server's clock, if the answer tells its time.
            let now = date.header().and_then(|date| httpdate::parse_http_date(date).ok());
            let life = until.duration_since(now.unwrap_or_else(|| SystemClock.wall_time().into())).ok()?;
            // The server's clock is up to a second ahead of what it says.
            let life = life.checked_sub(Duration::from_secs(1))?;
            let token = Some(parts.session_token).filter(|token| !token.is_empty());
            token.is_some().then_some((parts.access_key_id, parts.secret_access_key, token, until, life))
        });
        let Some((key, secret, token, until, life)) = parts else {
            let text = format!("{name}: the answer has no session that is valid now; check the endpoint");
            return Err(NoSession { kind: StoreErrorKind::Rejected, text });
        };
        let credentials = Credentials::new(key, secret, token, Some(until), "leaderelection session");
        Ok(Loaded::valid_for(credentials, sent, Some(life)))
    }

    async fn credentials(&self) -> Result<Credentials, CredentialsError> {
        let sessions = self.clone();
        let opened = self.0.kept.get(|| async move { sessions.opened().await }).await;
        opened.map_err(CredentialsError::provider_error)
    }
}

impl From<Broken> for NoSession {
    fn from(broken: Broken) -> Self {
        Self { kind: StoreErrorKind::Rejected, text: format!("no session was opened: {broken}") }
    }
}

impl ProvideCredentials for Sessions {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(self.credentials())
    }
}

// Written by hand, because a session is a secret.
impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("bucket", &self.0.bucket).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_kind_of_a_bucket() {
        assert!(is_directory("locks--use1-az4--x-s3"));
        assert!(!is_directory("locks") && !is_directory("x-s3"));
    }

    #[test]
    fn a_prefix_is_listed_by_its_folder() {
        for (prefix, folder) in [("", ""), ("a", ""), ("a/", "a/"), ("a/b", "a/"), ("a/b/c", "a/b/")] {
            assert_eq!(listed_by(prefix), folder);
        }
    }
}
