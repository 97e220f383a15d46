//! An OIDC issuer, whose keys verify the tokens that it has signed.

use std::path::Path;
use std::time::Duration;

use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{AlgorithmFamily, DecodingKey, Validation, dangerous, decode, decode_header};
use leaderelection::causes::with_causes;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::answers::PATIENCE;
use crate::exit::Failure;

/// The largest answer of an issuer that is read.
const LARGEST: usize = 256 * 1024;

/// The pause between two fetches of keys. A token with an unknown key costs no more than one.
const PAUSE: Duration = Duration::from_secs(10);

/// The age at which keys are fetched anew, and the one from which on they no longer count: an issuer withdraws keys.
const OLD: Duration = Duration::from_secs(10 * 60);
const TOO_OLD: Duration = Duration::from_secs(60 * 60);

/// An issuer that signs tokens for an audience.
#[derive(Debug)]
pub(super) struct Issuer {
    url: String,
    audience: String,
    client: Client,
    keys: Mutex<Keys>,
}

/// The keys of an issuer.
#[derive(Debug, Default)]
struct Keys {
    set: Option<JwkSet>,
    /// The time at which they came.
    at: Option<Instant>,
    asked: Option<Instant>,
    /// The reason for which the last fetch has failed, if it has.
    problem: Option<String>,
}

impl Keys {
    /// Returns the key with this name, if the issuer has it. The keys are fetched if they are old or do not have it.
    async fn find(
        &mut self,
        kid: &str,
        fetch: impl Future<Output = Result<JwkSet, String>>,
    ) -> Result<Option<DecodingKey>, String> {
        let is_younger = |time: Option<Instant>, age: Duration| time.is_some_and(|time| time.elapsed() < age);
        let is_there = self.set.as_ref().is_some_and(|set| set.find(kid).is_some());
        if !(is_there && is_younger(self.at, OLD) || is_younger(self.asked, PAUSE)) {
            self.asked = Some(Instant::now());
            // Whoever waits no longer drops the fetch.
            self.problem = Some("the keys of the issuer were not fetched in time".to_owned());
            match fetch.await {
                Ok(set) => *self = Self { set: Some(set), at: self.asked, asked: self.asked, problem: None },
                Err(problem) => self.problem = Some(problem),
            }
        }
        let set = self.set.as_ref().filter(|_| is_younger(self.at, TOO_OLD));
        match (set.and_then(|set| set.find(kid)), &self.problem) {
            (None, Some(problem)) => Err(problem.clone()),
            (found, _) => Ok(found.and_then(|key| DecodingKey::from_jwk(key).ok())),
        }
    }
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct Issued {
    iss: String,
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
}

impl Issuer {
    pub(super) fn new(url: String, audience: String, ca: Option<&Path>) -> Result<Self, Failure> {
        if !url.starts_with("https://") {
            return Err(Failure::usage(format!("--oidc-issuer-url {url} does not begin with https://")));
        }
        let client = Client::builder().redirect(Policy::none()).timeout(PATIENCE).https_only(true);
        let client = match ca {
            Some(path) => {
                let unfit = |error: &dyn std::fmt::Display| {
                    Failure::usage(format!("cannot read a CA in {}: {error}; check --oidc-ca-file", path.display()))
                };
                let pem = std::fs::read(path).map_err(|error| unfit(&error))?;
                client.tls_certs_only(Certificate::from_pem_bundle(&pem).map_err(|error| unfit(&error))?)
            }
            None => client,
        };
        let client = client
            .build()
            .map_err(|error| Failure::internal(format!("cannot create an HTTPS client: {}", with_causes(&error))))?;
        Ok(Self { url, audience, client, keys: Mutex::default() })
    }

    /// Returns the subject of a token of this issuer; `None` if it is none, or no valid one.
    ///
    /// # Errors
    ///
    /// The problem, if its key may be one of those that cannot be fetched.
    pub(super) async fn subject_of(&self, token: &str) -> Result<Option<String>, String> {
        // A stranger's token costs no fetch of keys.
        if !dangerous::insecure_decode_claims::<Issued>(token).is_ok_and(|token| token.iss == self.url) {
            return Ok(None);
        }
        // There is no algorithm `none`.
        let Some(kid) = decode_header(token).ok().and_then(|header| header.kid) else { return Ok(None) };
        let Some(key) = self.keys.lock().await.find(&kid, self.fetch()).await? else { return Ok(None) };
        // Whoever knows a public key could sign with it as with a shared secret.
        if key.family() == AlgorithmFamily::Hmac {
            return Ok(None);
        }
        let mut validation = Validation::new_for_family(key.family());
        validation.set_issuer(&[&self.url]);
        validation.set_audience(&[&self.audience]);
        validation.set_required_spec_claims(&["aud", "exp", "iss", "sub"]);
        validation.validate_nbf = true;
        Ok(decode::<Claims>(token, &key, &validation).ok().map(|token| token.claims.sub))
    }

    async fn fetch(&self) -> Result<JwkSet, String> {
        let place = format!("{}/.well-known/openid-configuration", self.url.trim_end_matches('/'));
        let Discovery { issuer, jwks_uri } = self.get(&place).await?;
        if issuer != self.url {
            return Err(format!("{place} is of the issuer {issuer:?}; correct --oidc-issuer-url"));
        }
        self.get(&jwks_uri).await
    }

    async fn get<T: DeserializeOwned>(&self, url: &str) -> Result<T, String> {
        let failed = |error: reqwest::Error| format!("cannot fetch {url}: {}", with_causes(&error.without_url()));
        let mut answer =
            self.client.get(url).send().await.and_then(|answer| answer.error_for_status()).map_err(failed)?;
        let mut body = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(failed)? {
            if body.len() + part.len() > LARGEST {
                return Err(format!("{url} has more than {LARGEST} bytes"));
            }
            body.extend_from_slice(&part);
        }
        serde_json::from_slice(&body).map_err(|error| format!("cannot read {url}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures_util::FutureExt as _;
    use serde_json::json;
    use tokio::time::advance;

    use super::*;

    fn set(kids: &[&str]) -> Result<JwkSet, String> {
        let key = |kid: &&str| json!({"kid": kid, "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
        Ok(serde_json::from_value(json!({"keys": kids.iter().map(key).collect::<Vec<_>>()})).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn keys_are_fetched_when_one_is_unknown_or_they_are_old_and_not_more_often() {
        let mut keys = Keys::default();
        let mut find = async |kid: &str, answer: Result<JwkSet, String>| {
            keys.find(kid, ready(answer)).await.map(|found| found.is_some())
        };
        let down = || Err("down".to_owned());
        assert_eq!(find("a", down()).await, Err("down".to_owned()));
        assert_eq!(find("a", set(&["a"])).await, Err("down".to_owned()), "it was asked a moment ago");
        advance(PAUSE).await;
        assert_eq!(find("a", set(&["a"])).await, Ok(true));
        assert_eq!(find("b", set(&["a", "b"])).await, Ok(false), "strangers cannot make it ask all the time");
        advance(PAUSE).await;
        assert_eq!(find("b", set(&["a", "b"])).await, Ok(true));
        advance(OLD).await;
        assert_eq!(find("a", set(&["b"])).await, Ok(false), "a key that was withdrawn");
        advance(OLD).await;
        assert_eq!(find("b", down()).await, Ok(true));
        advance(PAUSE).await;
        assert!(keys.find("c", pending()).now_or_never().is_none(), "its client goes away");
        let mut find = async |kid: &str, answer| keys.find(kid, ready(answer)).await.map(|found| found.is_some());
        assert!(find("c", set(&["c"])).await.unwrap_err().contains("not fetched in time"));
        assert_eq!(find("b", set(&["c"])).await, Ok(true));
        advance(TOO_OLD).await;
        assert_eq!(find("b", down()).await, Err("down".to_owned()));
    }
}
