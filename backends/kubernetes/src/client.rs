//! The client of an API server, made of kube's parts: it sends each request once, whichever version of kube the parts are of.
//!
//! The client that kube makes repeats writes from some version on, and a repeated write conflicts with its own first attempt.

use std::fmt;
use std::panic::catch_unwind;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderValue, Uri};
use hyper::rt::{Read, Write};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use kube::{Client, Config};
use percent_encoding::percent_decode_str;
use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use tower::{BoxError, Layer as _, Service, ServiceExt as _};

/// The reason for which no client can be made.
#[derive(Debug)]
pub(crate) enum NoClient {
    Kube(kube::Error),
    /// The URL of the proxy has another scheme than HTTP.
    Proxy,
    /// The features of this build name no provider of TLS, or several, and the program has not chosen one.
    Tls,
}

impl fmt::Display for NoClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kube(error) => error.fmt(f),
            // The URL may have a password.
            Self::Proxy => f.write_str("the URL of the proxy begins with neither http:// nor https://"),
            Self::Tls => f.write_str(
                "TLS has no provider, or more than one: enable the feature aws-lc-rs or ring of leaderelection-kubernetes, or call \
                 rustls::crypto::ring::default_provider().install_default() at the start of the program",
            ),
        }
    }
}

impl std::error::Error for NoClient {}

impl From<kube::Error> for NoClient {
    fn from(error: kube::Error) -> Self {
        Self::Kube(error)
    }
}

/// Creates a client that shows the certificates of this configuration, and no tokens.
pub(crate) fn new_client(config: &Config) -> Result<Client, NoClient> {
    choose_tls()?;
    let mut direct = HttpConnector::new();
    direct.enforce_http(false);
    let Some(proxy) = proxy(config) else { return of_connector(direct, config) };
    match proxy.scheme_str() {
        Some("http") => of_connector(by_proxy(proxy, direct), config),
        Some("https") => {
            let tls = config.rustls_https_connector_with_connector(direct)?;
            of_connector(by_proxy(proxy, tls), config)
        }
        _ => Err(NoClient::Proxy),
    }
}

/// The proxy of the kubeconfig, or the one that the environment names for the cluster. kube asks `NO_PROXY` about the proxy or not at
/// all, depending on its version, and never about the cluster.
fn proxy(config: &Config) -> Option<&Uri> {
    let named = |name| std::env::var(name).ok()?.parse().ok();
    let is_of_environment = ["HTTPS_PROXY", "https_proxy"].iter().any(|name| named(name) == config.proxy_url);
    let is_for_cluster =
        || Matcher::from_env().intercept(&config.cluster_url).is_some() && !is_excluded(&config.cluster_url);
    config.proxy_url.as_ref().filter(|_| !is_of_environment || is_for_cluster())
}

/// Returns `true` if `NO_PROXY` has the host of this server with its port. The matcher knows names, addresses and ranges.
fn is_excluded(server: &Uri) -> bool {
    let list = std::env::var("NO_PROXY").or_else(|_| std::env::var("no_proxy")).unwrap_or_default();
    let place = format!("{}:{}", server.host().unwrap_or_default(), server.port_u16().unwrap_or(443));
    list.split(',').map(str::trim).any(|entry| entry == "*" || entry.eq_ignore_ascii_case(&place))
}

fn of_connector<C>(connector: C, config: &Config) -> Result<Client, NoClient>
where
    C: Service<Uri, Response: Connection + Read + Write + Unpin + Send + 'static> + Clone + Send + Sync + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let client = legacy::Client::builder(TokioExecutor::new()).build::<_, Body>(connector);
    let service = config.base_uri_layer().layer(config.extra_headers_layer()?.layer(client.map_err(BoxError::from)));
    Ok(Client::new(service, config.default_namespace.clone()))
}

/// Connects through a proxy, with the name and the password in its URL.
fn by_proxy<C>(proxy: &Uri, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.clone(), connector);
    let user = proxy.authority().and_then(|authority| authority.as_str().split_once('@'));
    let header = user.and_then(|(user, _)| {
        let user: Vec<u8> = percent_decode_str(user).collect();
        HeaderValue::from_str(&format!("Basic {}", BASE64.encode(user))).ok()
    });
    match header {
        Some(header) => tunnel.with_auth(header),
        None => tunnel,
    }
}

/// Installs the provider of TLS that a feature of this crate names, unless the program has installed one.
fn choose_tls() -> Result<(), NoClient> {
    #[cfg(feature = "aws-lc-rs")]
    let provider = Some(rustls::crypto::aws_lc_rs::default_provider());
    #[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
    let provider = Some(rustls::crypto::ring::default_provider());
    #[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
    let provider: Option<CryptoProvider> = None;
    if CryptoProvider::get_default().is_some() {
        return Ok(());
    }
    let Some(provider) = provider else {
        // rustls takes the one that its own features name, and panics if they name none or two.
        return catch_unwind(ClientConfig::builder).map(drop).map_err(|_| NoClient::Tls);
    };
    // An error says that another thread was faster, which is as well.
    drop(provider.install_default());
    Ok(())
}
