//! Certificates that are renewed in their files while the process runs.

use std::fs;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use axum_server::tls_rustls::RustlsConfig;
use leaderelection::ConfigError;
use leaderelection_serving::expiry::Validity;
use rustls::ClientConfig;
use tokio::runtime;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::tls::{Files, Tls};

/// The settings of calls over TLS, as the files had them last; `None` without an authority.
pub(crate) type ClientTls = watch::Receiver<Option<Arc<ClientConfig>>>;

/// The files, and those who use what is in them.
#[derive(Debug)]
pub(crate) struct Renewal {
    interval: Duration,
    source: Source,
    /// Ends with this value.
    task: OnceLock<AbortOnDropHandle<()>>,
}

#[derive(Clone, Debug)]
struct Source {
    files: Files,
    /// The files as they were when they could be used last.
    read: State,
    /// The files as they were when they could not be used, so that this is said once.
    refused: Option<State>,
    client: Arc<watch::Sender<Option<Arc<ClientConfig>>>>,
    server: Option<RustlsConfig>,
    validity: Arc<watch::Sender<Option<Validity>>>,
}

/// A time and a length for each file, which change with its content.
type State = Vec<Option<(SystemTime, u64)>>;

impl Renewal {
    /// Reads the files for the first time.
    pub(crate) fn new(files: Files, interval: Duration) -> Result<Self, ConfigError> {
        if interval.is_zero() {
            return Err(ConfigError::new("reload_interval", "(0s) must be longer; the default is 1m"));
        }
        let read = state(&files);
        let Tls { client, server, validity } = files.load()?;
        let server = server.map(RustlsConfig::from_config);
        let (client, validity) = (Arc::new(watch::Sender::new(client)), Arc::new(watch::Sender::new(validity)));
        let source = Source { files, read, refused: None, client, server, validity };
        Ok(Self { interval, source, task: OnceLock::new() })
    }

    pub(crate) fn client(&self) -> ClientTls {
        self.source.client.subscribe()
    }

    pub(crate) fn server(&self) -> Option<RustlsConfig> {
        self.source.server.clone()
    }

    /// The validity of the certificate, as the files had it last.
    pub(crate) fn validity(&self) -> watch::Receiver<Option<Validity>> {
        self.source.validity.subscribe()
    }

    /// Looks at the files from now on, if there are any.
    pub(crate) fn start(&self, runtime: &runtime::Handle) {
        if !self.source.read.is_empty() {
            let follow = follow(self.source.clone(), self.interval);
            self.task.get_or_init(|| AbortOnDropHandle::new(runtime.spawn(follow)));
        }
    }
}

/// Reads the files again when they have changed. What was read before stays in use while they cannot be used.
async fn follow(mut source: Source, interval: Duration) {
    loop {
        sleep(interval).await;
        let before = source.clone();
        // A file system that hangs must not hold the elector back. The runtime panics where the system gives it no thread,
        // and the next poll may get one.
        let checked = tokio::spawn(async { spawn_blocking(|| before.check()).await }).await;
        if let Ok(Ok(next)) = checked {
            source = next;
        }
    }
}

impl Source {
    fn check(mut self) -> Self {
        let now = state(&self.files);
        if self.read != now {
            match self.files.load() {
                Ok(Tls { client, server, validity }) => {
                    // A file that has changed after `now` is seen at the next poll.
                    self.read = now;
                    self.refused = None;
                    self.client.send_replace(client);
                    if let (Some(known), Some(server)) = (&self.server, server) {
                        known.reload_from_config(server);
                    }
                    self.validity.send_replace(validity);
                    tracing::info!("read the certificates for peers anew, because their files have changed");
                }
                // A file that may not be read yet shows no change when it may be. So the next poll tries again.
                Err(error) => {
                    if self.refused.replace(now.clone()) != Some(now) {
                        tracing::warn!(%error, "cannot use the new certificates for peers; the old ones stay in use");
                    }
                }
            }
        }
        self
    }
}

fn state(files: &Files) -> State {
    let of = |path| fs::metadata(path).and_then(|metadata| Ok((metadata.modified()?, metadata.len()))).ok();
    files.paths().map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use leaderelection_test_support::logs::warnings_of;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    use super::*;

    fn authority() -> String {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    }

    #[test]
    fn a_check_without_a_thread_is_followed_by_another() {
        let source = Renewal::new(Files::default(), Duration::from_secs(60)).unwrap().source;
        // No thread has so large a stack, so this runtime gets none.
        let starved = runtime::Builder::new_current_thread().enable_time().thread_stack_size(1 << 48).build().unwrap();
        starved.block_on(async {
            let followed = tokio::time::timeout(Duration::from_millis(20), follow(source, Duration::from_millis(1)));
            assert!(followed.await.is_err(), "nobody would look any more");
        });
    }

    #[test]
    fn an_unusable_file_is_tried_again_although_it_looks_the_same() {
        let path = std::env::temp_dir().join(format!("leaderelection-peers-{}.ca", std::process::id()));
        fs::write(&path, authority()).unwrap();
        let files = Files { authority: Some(PathBuf::from(&path).into()), ..Files::default() };
        let renewal = Renewal::new(files, Duration::from_secs(60)).unwrap();
        let mut source = renewal.source.clone();
        let mut client = source.client.subscribe();

        let renewed = authority();
        fs::write(&path, "-".repeat(renewed.len())).unwrap();
        let broken = fs::metadata(&path).unwrap();
        for times in [1, 0] {
            let (warnings, checked) = warnings_of(|| source.check());
            assert_eq!(warnings.len(), times, "{warnings:?}");
            source = checked;
        }
        assert!(!client.has_changed().unwrap());

        fs::write(&path, &renewed).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(broken.modified().unwrap()).unwrap();
        source = source.check();
        assert!(client.has_changed().unwrap());
        client.mark_unchanged();
        source.check();
        assert!(!client.has_changed().unwrap(), "the files are as before");
        fs::remove_file(path).unwrap();
    }
}
