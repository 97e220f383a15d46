//! The connections and requests of a process that leads and of one that follows, while nothing happens, on each store.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use leaderelection::Timings;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection_arena::process::Process;
use serde_json::json;
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::adapted::{Adapted, By, Place};
use crate::proxy::sign::{Signer, unsigned};
use crate::proxy::{Kind, Proxy};
use crate::relay::Relay;
use crate::servers::azurite::Azurite;
use crate::servers::fake_gcs::{self, FakeGcs};
use crate::servers::kube_api::{KubeApi, NAMESPACE};
use crate::servers::seaweedfs::{self, SeaweedFs};
use crate::servers::tls::TlsFront;
use crate::takeover::first_after;

const CONTAINER: &str = "container";

/// The lock's URL or place, and the variables of the process that opens it.
type Access = (String, Vec<(&'static str, String)>);

/// A store, and how a process reaches it.
struct Store {
    name: &'static str,
    server: String,
    signer: Signer,
    /// The way begins with TLS, and the client chooses HTTP/2.
    is_http_2: bool,
    /// The access at an address such as `http://127.0.0.1:31234`.
    at: Box<dyn Fn(&str) -> Access + Send + Sync>,
}

/// The needs of one process since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The number of connections, each with its handshakes.
    pub connections: usize,
    /// The number of requests.
    pub requests: usize,
}

/// The needs of two processes on a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The name of the store.
    pub store: &'static str,
    /// Those of the leader.
    pub leader: Needs,
    /// Those of the follower.
    pub follower: Needs,
}

/// The way of a process to a server: the relay counts the connections, and the proxy behind it the requests.
struct Way {
    proxy: Proxy,
    front: Option<TlsFront>,
    relay: Relay,
    /// The certificate of TLS, the kubeconfig and the work of the leader.
    directory: PathBuf,
}

impl Way {
    async fn to(store: &Store, directory: PathBuf) -> Self {
        fs::create_dir(&directory).expect("a new directory");
        let proxy = Proxy::start(&store.server, Arc::clone(&store.signer)).await;
        let front = match store.is_http_2 {
            true => Some(TlsFront::start(&proxy.url(), &["h2", "http/1.1"], &directory).await),
            false => None,
        };
        let relay = Relay::start(&front.as_ref().map_or_else(|| proxy.url(), TlsFront::url)).await;
        Self { proxy, front, relay, directory }
    }

    /// Starts the program `contender`, whose work is beside this way.
    fn start(&self, program: &Path, store: &Store, identity: &str, timings: &Timings) -> Process {
        let (lock, environment) = (store.at)(self.relay.url());
        let mut command = Command::new(program);
        command.args([&lock, identity, &serde_json::to_string(timings).expect("timings as JSON")]);
        command.args(["--log", &format!("file://{}/log", self.directory.display())]);
        command.args(["--rest", &timings.retry_period().as_millis().to_string()]);
        command.envs(environment).env("NO_PROXY", "*").env("RUST_LOG", "error");
        if let Some(front) = &self.front {
            command.env("SSL_CERT_FILE", front.certificate());
        }
        Process::start(command, |_| {}).expect("a process")
    }

    fn needs(&self) -> Needs {
        Needs { connections: self.relay.accepted(), requests: self.proxy.inspect_traffic(<[_]>::len) }
    }
}

impl Store {
    /// Counts until the leader has renewed its lease so often.
    async fn count(self, program: PathBuf, timings: Timings, renewals: usize, directory: PathBuf) -> Counted {
        let ways = [Way::to(&self, directory.join("leader")).await, Way::to(&self, directory.join("follower")).await];
        let [leading, following] = &ways;
        let _leader = leading.start(&program, &self, "leader", &timings);
        let begin = SystemClock.now();
        let mut renewed: LocalInstant = first_after(&leading.proxy, begin, Kind::Renewal).await;
        let _follower = following.start(&program, &self, "follower", &timings);
        first_after(&following.proxy, begin, Kind::Read).await;
        for _ in 1..renewals {
            renewed = first_after(&leading.proxy, renewed, Kind::Renewal).await;
        }
        let is_write = |kind: Kind| !matches!(kind, Kind::Read | Kind::Other);
        let writes =
            following.proxy.inspect_traffic(|traffic| traffic.iter().filter(|seen| is_write(seen.kind)).count());
        assert_eq!(writes, 0, "{}: the follower has written", self.name);
        Counted { store: self.name, leader: leading.needs(), follower: following.needs() }
    }
}

/// Counts on all stores at once, until each leader has renewed its lease so often. `program` is the program `contender`. The
/// servers are installed in `installed`, and `directory` is for what this needs meanwhile.
///
/// # Panics
///
/// If a server or a process cannot be had, or if a leader does not renew its lease.
pub async fn count(
    program: &Path,
    timings: Timings,
    renewals: usize,
    installed: &Path,
    directory: &Path,
) -> Vec<Counted> {
    let (seaweedfs, azurite) = (SeaweedFs::start(installed), Azurite::start(installed));
    seaweedfs.create_bucket(seaweedfs::BUCKET).await;
    azurite.container(CONTAINER).create(None).await.expect("a container");
    let (gcs, kube) = (FakeGcs::start(fake_gcs::Options::default()).await, KubeApi::start().await);
    let stores = of_clouds(&seaweedfs, &azurite, &gcs, &kube, directory);
    let stores = stores.into_iter().chain(of_other_crates(&seaweedfs, &azurite));

    let mut counting = JoinSet::new();
    for (number, store) in stores.enumerate() {
        let own = directory.join(number.to_string());
        fs::create_dir(&own).expect("a new directory");
        let counted = store.count(program.to_owned(), timings, renewals, own);
        counting.spawn(async move { (number, counted.await) });
    }
    let mut counted = counting.join_all().await;
    counted.sort_by_key(|(number, _)| *number);
    counted.into_iter().map(|(_, counted)| counted).collect()
}

fn of_clouds(seaweedfs: &SeaweedFs, azurite: &Azurite, gcs: &FakeGcs, kube: &KubeApi, directory: &Path) -> Vec<Store> {
    let keys: Vec<_> = seaweedfs.environment().map(|(name, value)| (name, value.to_owned())).into();
    let s3 = |name, is_http_2, key: &'static str| {
        let keys = keys.clone();
        let at = move |url: &str| {
            (format!("s3://{}/{key}?region=us-east-1&endpoint={url}", seaweedfs::BUCKET), keys.clone())
        };
        Store { name, server: seaweedfs.url(), signer: seaweedfs.signer(), is_http_2, at: Box::new(at) }
    };
    // The signature of a SAS covers no address.
    let (account, sas) = (azurite.account_key().0.to_owned(), azurite.sas("rwdlc"));
    let in_container = move |url: &str| (format!("{url}/{account}/{CONTAINER}/lock?{sas}"), Vec::new());
    let in_bucket =
        |url: &str| (format!("gs://{}/lock", fake_gcs::BUCKET), vec![("STORAGE_EMULATOR_HOST", url.to_owned())]);
    let (kubeconfig, directory) = (kube.kubeconfig(), directory.to_owned());
    let in_cluster = move |url: &str| {
        let mut kubeconfig = kubeconfig.clone();
        kubeconfig["clusters"] = json!([{"name": "tests", "cluster": {"server": url}}]);
        let file = directory.join(url.replace(|c: char| !c.is_ascii_digit(), "-"));
        fs::write(&file, kubeconfig.to_string()).expect("a kubeconfig");
        (format!("lease://{NAMESPACE}/lock"), vec![("KUBECONFIG", file.display().to_string())])
    };
    let plain = |name, server, at| Store { name, server, signer: unsigned(), is_http_2: false, at };
    vec![
        s3("S3", false, "lock"),
        s3("S3, HTTP/2", true, "lock-2"),
        plain("Google", gcs.url(), Box::new(in_bucket)),
        plain("Azure", azurite.url(), Box::new(in_container)),
        plain("Kubernetes", kube.url(), Box::new(in_cluster)),
    ]
}

fn of_other_crates(seaweedfs: &SeaweedFs, azurite: &Azurite) -> Vec<Store> {
    let [(_, access_key), (_, secret_key)] = seaweedfs.environment().map(|(name, value)| (name, value.to_owned()));
    let bucket = Place::S3 { endpoint: String::new(), bucket: seaweedfs::BUCKET.to_owned(), access_key, secret_key };
    let container = Place::Azure {
        endpoint: String::new(),
        account: azurite.account_key().0.to_owned(),
        container: CONTAINER.to_owned(),
        key_or_sas: azurite.sas("rwdlc"),
    };
    let through = |name, by, place: &Place, key: &str| {
        let (server, signer) = match place {
            Place::S3 { .. } => (seaweedfs.url(), seaweedfs.signer()),
            _ => (azurite.url(), unsigned()),
        };
        let store = Adapted { by, place: place.clone(), retries: false, key: key.to_owned() };
        let at = move |url: &str| {
            let mut store = store.clone();
            url.clone_into(store.place.endpoint());
            (store.to_string(), Vec::new())
        };
        Store { name, server, signer, is_http_2: false, at: Box::new(at) }
    };
    vec![
        through("object_store, S3", By::ObjectStore, &bucket, "object-store"),
        through("object_store, Azure", By::ObjectStore, &container, "object-store"),
        through("OpenDAL, S3", By::Opendal, &bucket, "opendal"),
        through("OpenDAL, Azure", By::Opendal, &container, "opendal"),
    ]
}
