//! Signs requests with a storage account's key, which `azure_storage_blob` leaves to its users.
//!
//! <https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key>

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use azure_core::base64;
use azure_core::credentials::Secret;
use azure_core::error::{Error, ErrorKind};
use azure_core::http::policies::{Policy, PolicyResult};
use azure_core::http::{Context, Request};
use azure_core::time::{OffsetDateTime, to_rfc7231};
use hmac::{Hmac, KeyInit, Mac};
use leaderelection::StoreError;
use sha2::Sha256;

use crate::error::misconfigured;

/// The headers whose values are signed, in this order. The value of `content-length` comes from the body.
const SIGNED_HEADERS: [&str; 11] = [
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
];

pub(crate) struct SharedKeyPolicy {
    account: String,
    key: Hmac<Sha256>,
}

impl SharedKeyPolicy {
    pub(crate) fn new(account: String, key: &Secret) -> Result<Self, StoreError> {
        let wrong = || misconfigured(format!("the key of storage account {account} is not base64; copy it again"));
        let key = base64::decode(key.secret()).map_err(|_| wrong())?;
        let key = Hmac::new_from_slice(&key).map_err(|_| wrong())?;
        Ok(Self { account, key })
    }

    fn sign(&self, request: &Request) -> String {
        let mut mac = self.key.clone();
        mac.update(self.string_to_sign(request).as_bytes());
        base64::encode(mac.finalize().into_bytes())
    }

    fn string_to_sign(&self, request: &Request) -> String {
        let headers: BTreeMap<_, _> =
            request.headers().iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        // The transport adds the length later, and omits it for a request without a body.
        let length = request.body().len().filter(|length| *length > 0).map(|length| length.to_string());

        let mut text = format!("{}\n", request.method().as_str());
        for name in SIGNED_HEADERS {
            let value = if name == "content-length" { length.as_deref() } else { headers.get(name).copied() };
            text.push_str(value.unwrap_or_default());
            text.push('\n');
        }
        for (name, value) in headers.iter().filter(|(name, _)| name.starts_with("x-ms-")) {
            text.push_str(&format!("{name}:{value}\n"));
        }
        text.push_str(&format!("/{}{}", self.account, request.url().path()));
        let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in request.url().query_pairs() {
            parameters.entry(name.to_lowercase()).or_default().push(value.into_owned());
        }
        for (name, mut values) in parameters {
            values.sort_unstable();
            text.push_str(&format!("\n{name}:{}", values.join(",")));
        }
        text
    }
}

#[async_trait]
impl Policy for SharedKeyPolicy {
    async fn send(&self, ctx: &Context, request: &mut Request, next: &[Arc<dyn Policy>]) -> PolicyResult {
        request.insert_header("x-ms-date", to_rfc7231(&OffsetDateTime::now_utc()));
        let signature = self.sign(request);
        request.insert_header("authorization", format!("SharedKey {}:{signature}", self.account));
        let no_transport = || Error::with_message(ErrorKind::Other, "the client has no transport");
        let (following, rest) = next.split_first().ok_or_else(no_transport)?;
        following.send(ctx, request, rest).await
    }
}

impl fmt::Debug for SharedKeyPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedKeyPolicy").field("account", &self.account).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use azure_core::http::{Method, Url};

    use super::*;

    #[test]
    fn signs_what_the_service_documents() {
        let url = "https://account.blob.core.windows.net/container/a%2Fb?comp=list&Restype=container&x=2&x=1&p=a%2Fb";
        let mut request = Request::new(Url::parse(url).unwrap(), Method::Put);
        request.insert_header("content-type", "application/json");
        request.insert_header("if-match", "\"0x1\"");
        request.insert_header("x-ms-version", "2026-02-06");
        request.insert_header("x-ms-blob-type", "BlockBlob");
        request.set_body(b"{}".to_vec());
        let policy = SharedKeyPolicy::new("account".to_owned(), &Secret::new("a2V5")).unwrap();
        let expected = "PUT\n\n\n2\n\napplication/json\n\n\n\"0x1\"\n\n\n\n\
            x-ms-blob-type:BlockBlob\nx-ms-version:2026-02-06\n\
            /account/container/a%2Fb\ncomp:list\np:a/b\nrestype:container\nx:1,2";
        assert_eq!(policy.string_to_sign(&request), expected);
    }

    #[test]
    fn a_key_that_is_none_is_refused_and_not_shown() {
        let error = SharedKeyPolicy::new("account".to_owned(), &Secret::new("not a key")).unwrap_err();
        assert_eq!(error.to_string(), "the key of storage account account is not base64; copy it again");
    }
}
