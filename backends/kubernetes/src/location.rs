//! `lease://` URLs.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use leaderelection::implement::ConditionalStore;
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_store_support::request::{Words, causes, failed};
use leaderelection_store_support::url::{Parameter, Place, Scheme, Table, UrlError, Value, check_name, wrong};
use leaderelection_store_support::{CompiledHere, url_of_table, variable};

use crate::LeaseStore;
use crate::lease::{self, check_label};
use crate::tokens::Again;

/// A Kubernetes Lease: `lease://namespace/name`, or `lease:///name` in the namespace of the pod that runs the program.
/// Behind a `?`, `label=team=payments` is a [label](crate::LeaseStore::with_labels) of the Lease, and `&` joins several.
///
/// ```
/// use leaderelection_kubernetes::LeaseLocation;
///
/// let location: LeaseLocation = "lease://default/scheduler".parse()?;
/// assert_eq!((location.namespace.as_str(), location.key.as_str()), ("default", "scheduler"));
/// # Ok::<(), leaderelection_kubernetes::UrlError>(())
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
        Self::made("lease", &namespace.into(), key.into()).map_err(wrong::<Self>)
    }

    /// Opens the store of Leases in this namespace, on the cluster of the current context in the kubeconfig that
    /// `KUBECONFIG` names or that is in its usual place. In a pod, it opens the store on the cluster of the pod, with the
    /// pod's service account.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Fatal`] if there is no such configuration, or if it is invalid.
    pub async fn open(&self) -> Result<LeaseStore, StoreError> {
        let (config, again) = (self.config().await?, self.again());
        let namespace = config.default_namespace.clone();
        Ok(LeaseStore::read_again_by(again, config, namespace)?.with_labels(self.labels.clone()))
    }

    fn again(&self) -> Again {
        let location = self.clone();
        Arc::new(move || {
            let location = location.clone();
            Box::pin(async move { location.config().await.ok() })
        })
    }

    /// The cluster, with the namespace of this location as its default.
    fn config(&self) -> CompiledHere<'_, Result<Config, StoreError>> {
        Box::pin(async move {
            let unknown = |error: &(dyn Error + 'static)| {
                let (advice, words) = match syntax_error(error) {
                    Some(syntax_error) => (syntax_error, None),
                    None => {
                        let advice = match variable("KUBECONFIG") {
                            Some(files) => format!(
                                "no cluster is known; KUBECONFIG is {files}: correct it, or put a kubeconfig there"
                            ),
                            None => {
                                "no cluster is known; set KUBECONFIG, or run in a pod with a service account".to_owned()
                            }
                        };
                        (advice, Words::of_error(error))
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
            Ok(config)
        })
    }
}

/// The cluster of the pod, or of the kubeconfig.
pub(crate) async fn cluster_of_environment() -> Result<(Config, Again), StoreError> {
    let any = LeaseLocation { namespace: String::new(), key: String::new(), labels: BTreeMap::new() };
    Ok((any.config().await?, any.again()))
}

impl Table for LeaseLocation {
    const EXAMPLE: &'static str = "lease://namespace/name";

    const SCHEMES: &'static [Scheme<Self>] = &[Scheme {
        name: "lease",
        parameters: &[Parameter {
            name: "label",
            help: "a label of the Lease, such as label=team=payments",
            value: Value::Pairs(
                |key, value| check_label(key, value).map_err(|problem| format!("the value of label is {problem}")),
                |location| &mut location.labels,
            ),
        }],
        refused: &[(
            "ca",
            "lease:// has no parameter ca: certificate-authority in the kubeconfig names the file, and a pod has its cluster's",
        )],
    }];

    fn made(_scheme: &str, authority: &str, path: String) -> Result<Self, String> {
        if !authority.is_empty() {
            check_name(authority, "namespace", "")?;
        }
        if path.is_empty() {
            return Err("no name of a Lease after the namespace".to_owned());
        }
        lease::check_name(&path).map_err(|problem| format!("the text after the namespace is {problem}"))?;
        Ok(Self { namespace: authority.to_owned(), key: path, labels: BTreeMap::new() })
    }

    fn authority(&self) -> &str {
        &self.namespace
    }
}

impl Place for LeaseLocation {
    fn key(&self) -> &str {
        &self.key
    }

    fn key_mut(&mut self) -> &mut String {
        &mut self.key
    }

    fn store(&self) -> CompiledHere<'_, Result<Arc<dyn ConditionalStore>, StoreError>> {
        Box::pin(async move { Ok(Arc::new(self.open().await?) as Arc<dyn ConditionalStore>) })
    }

    fn server(&self) -> CompiledHere<'_, Result<Option<String>, StoreError>> {
        Box::pin(async move {
            let Config { cluster_url, default_namespace, .. } = self.config().await?;
            Ok(Some(format!("{cluster_url}apis/coordination.k8s.io/v1/namespaces/{default_namespace}/leases")))
        })
    }
}

url_of_table!(LeaseLocation);

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
