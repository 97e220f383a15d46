//! A call to the address in the record: no further than the allow-list, and with nothing that is secret.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};
use rustls::ClientConfig;
use tokio::net::lookup_host;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::allow::AllowList;
use crate::key::SharedKey;
use crate::refusal::Refusal;
use crate::renewal::ClientTls;
use crate::tls::of_plain_http;
use crate::wire::{CHALLENGE, CODE, EVENT_STREAM, question};

/// The time that a peer has to answer: for its name, for the connection and for the head of the answer.
pub(crate) const PEER_TIMEOUT: Duration = Duration::from_secs(3);

/// The settings of calls.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) allowed: AllowList,
    pub(crate) plain_http: bool,
    pub(crate) tls: ClientTls,
    pub(crate) key: Option<SharedKey>,
}

impl Caller {
    /// Opens a stream about `lock` at the address in a record.
    pub(crate) async fn open(&self, address: &str, lock: &str, nonce: &str) -> Result<Response, Refusal> {
        let call = self.call(address, lock, nonce);
        let response = timeout(PEER_TIMEOUT, call).await.map_err(|_| Refusal::Timeout(PEER_TIMEOUT))??;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED if wants_key(&response) => return Err(Refusal::WrongKey),
            StatusCode::CONFLICT => return Err(Refusal::NotLeading),
            StatusCode::NOT_FOUND => return Err(Refusal::UnknownLock),
            StatusCode::SERVICE_UNAVAILABLE => return Err(Refusal::Busy),
            status if status.is_redirection() => return Err(Refusal::Redirect),
            status => return Err(Refusal::Status(status.as_u16())),
        }
        let content = response.headers().get(CONTENT_TYPE).and_then(|content| content.to_str().ok());
        match content {
            Some(content) if content.split(';').next().is_some_and(|media| media.trim() == EVENT_STREAM) => {
                Ok(response)
            }
            Some(content) => Err(Refusal::not_a_peer(format!("it is {:?}", content.get(..40).unwrap_or(content)))),
            None => Err(Refusal::not_a_peer("it has no type")),
        }
    }

    async fn call(&self, address: &str, lock: &str, nonce: &str) -> Result<Response, Refusal> {
        let mut url = Url::parse(address).map_err(|_| Refusal::BadAddress)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::BadAddress);
        }
        let mut client = Client::builder()
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .http1_only()
            .pool_max_idle_per_host(0);
        let tls = self.tls.borrow().clone();
        match (url.scheme(), tls) {
            ("https", Some(tls)) => client = client.tls_backend_preconfigured(ClientConfig::clone(&tls)),
            ("https", None) => return Err(Refusal::NoAuthority),
            ("http", _) if self.plain_http => {
                let tls = of_plain_http().map_err(|error| Refusal::Tls { problem: error.to_string() })?;
                client = client.tls_backend_preconfigured(tls);
            }
            ("http", _) => return Err(Refusal::PlainHttp),
            _ => return Err(Refusal::BadAddress),
        }
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(Refusal::BadAddress);
        };
        // The connection goes to the addresses that were checked, and no name is resolved again.
        let addresses = self.resolve(host, port).await?;
        client = client.resolve_to_addrs(host, &addresses);
        let client = client.build().map_err(|error| Refusal::Tls { problem: error.to_string() })?;
        url.query_pairs_mut().append_pair("lock", lock).append_pair("nonce", nonce);
        let mut request = client.get(url).header(ACCEPT, EVENT_STREAM);
        if let Some(key) = &self.key {
            request = request.header(CODE, key.code(question(lock, nonce)));
        }
        request.send().await.map_err(|error| Refusal::of(&error))
    }

    /// Returns the addresses of a host that may be connected to.
    async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Refusal> {
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = literal.parse::<IpAddr>() {
            self.allowed.admit(address, false)?;
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let is_named = self.allowed.names(host);
        // On a task of its own: the runtime panics where the system gives it no thread for the look-up.
        let name = (host.to_owned(), port);
        let found = AbortOnDropHandle::new(tokio::spawn(async {
            io::Result::Ok(lookup_host(name).await?.collect::<Vec<_>>())
        }));
        let found = found.await.map_err(io::Error::from).and_then(|found| found);
        let found = found.map_err(|error| Refusal::Unresolved { problem: error.to_string() })?;
        let mut refused = Refusal::Unresolved { problem: "the answer is empty".to_owned() };
        let mut admitted = Vec::new();
        for address in found {
            match self.allowed.admit(address.ip(), is_named) {
                Ok(()) => admitted.push(address),
                Err(refusal) => refused = refusal,
            }
        }
        if admitted.is_empty() { Err(refused) } else { Ok(admitted) }
    }
}

/// Returns `true` if a peer has refused the question, and not another service in its place.
fn wants_key(response: &Response) -> bool {
    response.headers().get(WWW_AUTHENTICATE).is_some_and(|scheme| scheme == CHALLENGE)
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;
    use tokio::sync::watch;

    use super::*;

    #[test]
    fn a_host_that_no_thread_looks_up_is_refused() {
        let tls = watch::Sender::new(None).subscribe();
        let caller = Caller { allowed: AllowList(Vec::new()), plain_http: true, tls, key: None };
        // No thread has so large a stack, so this runtime gets none.
        let starved = Builder::new_current_thread().enable_all().thread_stack_size(1 << 48).build().unwrap();
        let refusal = starved.block_on(caller.resolve("localhost", 1)).unwrap_err();
        assert!(matches!(refusal, Refusal::Unresolved { .. }), "{refusal}");
    }
}
