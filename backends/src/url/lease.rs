//! `lease://` URLs.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use leaderelection::{StoreError, StoreErrorKind};
use percent_encoding::percent_decode_str;

use super::UrlError;
use super::ca::{self, NOT_OF_LEASES};
use super::compiled::CompiledHere;
use super::parts::{Parts, check_name, escaped};
use crate::kubernetes::tokens::Again;
use crate::kubernetes::{self, LeaseStore};
use crate::request::{Words, causes, failed};

const EXAMPLE: &str = "lease://namespace/name";

/// A Lease of Kubernetes: `lease://namespace/name`, or `lease:///name` in the namespace of the pod that runs the program.
/// Behind a `?`, `label=team=payments` is a [label](crate::kubernetes::LeaseStore::with_labels) of the Lease, and `&` joins several.
///
/// ```
/// use leaderelection_backends::url::LeaseLocation;
///
/// let location: LeaseLocation = "lease://default/scheduler".parse()?;
/// assert_eq!((location.namespace.as_str(), location.key.as_str()), ("default", "scheduler"));
/// # Ok::<(), leaderelection_backends::url::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseLocation {
    /// The namespace. If it is empty, [`open`](Self::open) takes the pod's own, and outside of a cluster that of the current
    /// context in the kubeconfig.
    pub namespace: String,
    /// The name of the Lease.
    pub key: String,
    /// The labels that each write gives to the Lease.
    pub labels: BTreeMap<String, String>,
}

impl LeaseLocation {
    /// Names a Lease in a namespace, which may be empty: see [`namespace`](Self::namespace).
    ///
    /// # Errors
    ///
    /// If the name of the namespace or that of the Lease is invalid.
    pub fn new(namespace: impl Into<String>, key: impl Into<String>) -> Result<Self, UrlError> {
        let (namespace, key) = (namespace.into(), key.into());
        if !namespace.is_empty() {
            check_name(&namespace, "namespace", "").map_err(|problem| wrong(&problem))?;
        }
        if key.is_empty() {
            return Err(wrong("no name of a Lease behind the namespace"));
        }
        kubernetes::check_name(&key)
            .map_err(|problem| wrong(&format!("what stands behind the namespace is {problem}")))?;
        Ok(Self { namespace, key, labels: BTreeMap::new() })
    }

    /// Returns the same Lease with one more label.
    ///
    /// # Errors
    ///
    /// If the key or the value is invalid.
    pub fn with_label(mut self, key: &str, value: &str) -> Result<Self, UrlError> {
        kubernetes::check_label(key, value)
            .map_err(|problem| wrong(&format!("what stands for the label is {problem}")))?;
        self.labels.insert(key.to_owned(), value.to_owned());
        Ok(self)
    }

    /// Opens the store of Leases in this namespace, on the cluster of the current context in the kubeconfig that
    /// `KUBECONFIG` names or that is in its usual place. In a pod, it opens the store on the cluster of the pod, with the
    /// pod's service account.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`] if there is no such configuration, or if it is invalid.
    pub async fn open(&self) -> Result<LeaseStore, StoreError> {
        let config = self.config().await?;
        let namespace = config.default_namespace.clone();
        let location = self.clone();
        let again: Again = Arc::new(move || {
            let location = location.clone();
            Box::pin(async move { location.config().await.ok() })
        });
        Ok(LeaseStore::read_again_by(again, config, namespace)?.with_labels(self.labels.clone()))
    }

    /// The Leases that [`open`](Self::open) asks for.
    pub(super) async fn endpoint(&self) -> Result<String, StoreError> {
        let Config { cluster_url, default_namespace, .. } = self.config().await?;
        Ok(format!("{cluster_url}apis/coordination.k8s.io/v1/namespaces/{default_namespace}/leases"))
    }

    /// The cluster, with the namespace of this location as its default.
    fn config(&self) -> CompiledHere<'_, Result<Config, StoreError>> {
        Box::pin(async move {
            let unknown = |error: &(dyn Error + 'static)| {
                let (advice, words) = match syntax_error(error) {
                    Some(syntax_error) => (syntax_error, None),
                    None => {
                        let advice = "no cluster is known; set KUBECONFIG, or run in a pod with a service account";
                        (advice.to_owned(), Words::of_error(error))
                    }
                };
                failed(&self.to_string(), (StoreErrorKind::Fatal, advice), words)
            };
            let mut config = match present_of_several() {
                Some(paths) => merged(&paths).await.map_err(|error| unknown(&error))?,
                None => Config::infer().await.map_err(|error| unknown(&error))?,
            };
            if !self.namespace.is_empty() {
                config.default_namespace.clone_from(&self.namespace);
            }
            config.proxy_url = proxy(&config);
            Ok(config)
        })
    }
}

impl FromStr for LeaseLocation {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let Parts { authority: namespace, path: key, query } = Parts::parse(text, "lease", EXAMPLE)?;
        let mut location = Self::new(namespace, key)?;
        if query.is_some_and(ca::is_in) {
            return Err(wrong(NOT_OF_LEASES));
        }
        for parameter in query.into_iter().flat_map(|query| query.split('&')) {
            let Some(label) = parameter.strip_prefix("label=") else {
                return Err(wrong("the only parameter is label, such as label=team=payments"));
            };
            let label = percent_decode_str(label).decode_utf8_lossy();
            let (key, value) = label.split_once('=').ok_or_else(|| wrong("a label without = and a value"))?;
            location = location.with_label(key, value)?;
        }
        Ok(location)
    }
}

/// The proxy of the kubeconfig, or the one that the environment names for the cluster. kube asks `NO_PROXY` about the proxy, and
/// not about the cluster.
fn proxy(config: &Config) -> Option<Uri> {
    let named = |name| std::env::var(name).ok()?.parse().ok();
    let is_of_environment = ["HTTPS_PROXY", "https_proxy"].iter().any(|name| named(name) == config.proxy_url);
    let is_for_cluster =
        || Matcher::from_env().intercept(&config.cluster_url).is_some() && !is_excluded(&config.cluster_url);
    config.proxy_url.clone().filter(|_| !is_of_environment || is_for_cluster())
}

/// Returns `true` if `NO_PROXY` has the host of this server with its port. The matcher knows names, addresses and ranges.
fn is_excluded(server: &Uri) -> bool {
    let list = std::env::var("NO_PROXY").or_else(|_| std::env::var("no_proxy")).unwrap_or_default();
    let place = format!("{}:{}", server.host().unwrap_or_default(), server.port_u16().unwrap_or(443));
    list.split(',').map(str::trim).any(|entry| entry.eq_ignore_ascii_case(&place))
}

/// The files of a list in `KUBECONFIG` of which some are missing. `kubectl` leaves these out, and kube fails.
fn present_of_several() -> Option<Vec<PathBuf>> {
    let list = std::env::var_os("KUBECONFIG")?;
    let all: Vec<PathBuf> = std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect();
    let present: Vec<PathBuf> = all.iter().filter(|path| path.exists()).cloned().collect();
    (!present.is_empty() && present.len() < all.len()).then_some(present)
}

async fn merged(paths: &[PathBuf]) -> Result<Config, KubeconfigError> {
    let all = paths.iter().try_fold(Kubeconfig::default(), |all, path| all.merge(Kubeconfig::read_from(path)?))?;
    Config::from_custom_kubeconfig(all, &KubeConfigOptions::default()).await
}

/// The place at which a kubeconfig is no kubeconfig. The parser's own message quotes the lines around the place, and these may
/// hold a token.
fn syntax_error(error: &(dyn Error + 'static)) -> Option<String> {
    let syntax_error = causes(error).find_map(|cause| match cause.downcast_ref::<KubeconfigError>()? {
        KubeconfigError::Parse(syntax_error) => Some(syntax_error),
        _ => None,
    })?;
    let place = syntax_error.location().map(|place| format!(" in line {}, column {}", place.line(), place.column()));
    let place = place.unwrap_or_default();
    Some(format!("the kubeconfig is invalid{place}; `kubectl config view` tells more, and shows no secrets"))
}

fn wrong(problem: &str) -> UrlError {
    UrlError { problem: problem.to_owned(), example: EXAMPLE }
}

impl fmt::Display for LeaseLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lease://{}/{}", self.namespace, escaped(&self.key))?;
        // A label has no character that a URL has to encode.
        for (number, (key, value)) in self.labels.iter().enumerate() {
            write!(f, "{}label={key}={value}", if number == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}
