//! Directory buckets, which hold the storage class S3 Express One Zone: how they list, and the sessions of their requests.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, future};
use aws_sdk_s3::Client;
use leaderelection::StoreErrorKind;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::lock::loading_credentials;

use super::date::AnswerDate;
use super::error::{self, NoSession, Sender};
use crate::request::fresh::Fresh;
use crate::request::joint::{JointLoad, Loading};
use crate::request::{Operation, bounded};

/// The end of the name of a directory bucket, by which Amazon's clients know it.
const SUFFIX: &str = "--x-s3";

/// The longest time for the answer to the opening of a session.
const LIMIT: Duration = Duration::from_secs(5);

/// The parts of a session's life. It counts as over one part before its end, and a renewal that failed is repeated a part
/// later.
const PARTS: u32 = 16;

/// A session that is younger is not the reason of a refusal.
const YOUNG: Duration = Duration::from_secs(1);

/// Returns `true` if this is the name of a directory bucket.
pub(crate) fn is_directory(bucket: &str) -> bool {
    bucket.ends_with(SUFFIX)
}

/// Returns the longest prefix of `prefix` that a directory bucket lists: up to the last `/`. The empty one lists all.
pub(super) fn listed_by(prefix: &str) -> &str {
    prefix.rfind('/').map_or("", |last| &prefix[..=last])
}

/// The session of one bucket: credentials that sign its requests, for five minutes on Amazon S3.
///
/// A session is renewed from the middle of its life by a task of its own, so no request waits for a renewal. The SDK's
/// own sessions are opened by the first request after their end, and anew if that request is given up.
#[derive(Clone)]
pub(super) struct Sessions(Arc<Inner>);

struct Inner {
    /// A client with the user's own credentials, which sign nothing but the opening of sessions.
    client: Fresh<Client>,
    bucket: String,
    held: Mutex<Option<Session>>,
    opening: JointLoad<(), Result<Session, NoSession>>,
}

#[derive(Clone)]
struct Session {
    credentials: Credentials,
    opened: LocalInstant,
    /// The moment from which a request begins a renewal.
    renewed_from: LocalInstant,
    /// The moment from which no request is signed by this session.
    ends: LocalInstant,
    part: Duration,
}

impl Sessions {
    pub(super) fn new(client: Fresh<Client>, bucket: &str) -> Self {
        let (held, opening) = (Mutex::default(), JointLoad::new());
        Self(Arc::new(Inner { client, bucket: bucket.to_owned(), held, opening }))
    }

    /// Gives up the session after the store has refused it, so that the next request opens another.
    pub(super) fn refused(&self) {
        let mut held = self.held();
        // Other requests that were refused with the same session may come here later, and find the next session.
        if held.as_ref().is_some_and(|session| SystemClock.now().saturating_since(session.opened) >= YOUNG) {
            *held = None;
        }
    }

    /// Begins to open a session, on a task of its own, or joins the opening that is under way.
    fn open(&self) -> Loading<Result<Session, NoSession>> {
        let sessions = self.clone();
        let opening = || async move {
            let opened = sessions.opened().await;
            let mut held = sessions.held();
            match (&opened, held.as_mut()) {
                (Ok(session), _) => *held = Some(session.clone()),
                (Err(why), Some(session)) => {
                    session.renewed_from = SystemClock.now() + session.part;
                    let (bucket, retry) = (&sessions.0.bucket, session.part);
                    tracing::warn!(bucket, reason = %why, ?retry, "the session of a bucket is not renewed yet");
                }
                (Err(_), None) => {}
            }
            opened
        };
        let broken = |error: tokio::task::JoinError| {
            Err(NoSession { kind: StoreErrorKind::Rejected, text: format!("no session was opened: {error}") })
        };
        self.0.opening.join((), opening, broken)
    }

    async fn opened(&self) -> Result<Session, NoSession> {
        let name = format!("the session of the bucket {}", self.0.bucket);
        let (sent, date) = (SystemClock.now(), AnswerDate::default());
        let answer = self.0.client.ask(&name, async |client| {
            let request = client.create_session().bucket(&self.0.bucket).customize();
            request.interceptor(date.clone()).send().await.map_err(|error| {
                let has_region = client.config().region().is_some();
                let sender = Sender { has_region, endpoint: None, by_session: false };
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
        let part = life / PARTS;
        Ok(Session {
            credentials: Credentials::new(key, secret, token, Some(until), "leaderelection session"),
            opened: sent,
            renewed_from: sent + life / 2,
            ends: sent + (life - part),
            part,
        })
    }

    async fn credentials(&self) -> Result<Credentials, CredentialsError> {
        let (held, now) = (self.held().clone(), SystemClock.now());
        if let Some(session) = held.filter(|session| now < session.ends) {
            if now >= session.renewed_from {
                // Somebody has to take the result, or else the next renewal would find it.
                drop(tokio::spawn(self.open()));
            }
            return Ok(session.credentials);
        }
        let opened = loading_credentials(self.open()).await;
        opened.map(|session| session.credentials).map_err(CredentialsError::provider_error)
    }

    fn held(&self) -> MutexGuard<'_, Option<Session>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
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
