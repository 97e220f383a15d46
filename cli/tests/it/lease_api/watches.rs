//! The watches of others, as they are, on the real server: they go on when it was frozen or killed.

use std::cell::RefCell;
use std::io::Write as _;
use std::pin::pin;
use std::process::{Child, Command, Stdio};

use futures_util::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Config};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::Value;

use super::{LEASES, drivers, lease, lease_api, send};
use crate::peers::own_address;
use crate::serve::sidecar::Sidecar;
use crate::support::{Lines, Place};

/// The program, which is ended when dropped.
struct Watches(Child);

impl Drop for Watches {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the program has said all of these, in any order.
fn prints(lines: &mut Lines, wanted: &[&str]) {
    let left = RefCell::new(wanted.to_vec());
    let found = lines.wait_for(|line| {
        left.borrow_mut().retain(|wanted| *wanted != line);
        left.borrow().is_empty().then_some(())
    });
    found.unwrap_or_else(|seen| panic!("not all of {wanted:?}: {seen:?}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_of_client_go_go_on_from_a_lease_and_behind_a_restart() {
    let Some(program) = drivers::file("go/watches") else {
        return println!(
            "skipped: LEADERELECTION_TEST_DRIVERS names no folder with watches, see comparison/build-drivers"
        );
    };
    let place = Place::new();
    let (kubeconfig, folder) = (place.path("kubeconfig"), place.file("leases"));
    let serve = async |listen: &str| {
        let mut command = lease_api(&folder, listen);
        command.arg("--kubeconfig").arg(&kubeconfig).args(["--watch-interval", "100ms"]);
        Sidecar::spawn(&mut command).await
    };
    let server = serve(&own_address()).await;
    let listen = server.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
    let (_, mut held) = send(&server, Method::POST, LEASES, "", &lease("first")).await;
    let mut command = Command::new(program);
    command.arg("web").env("KUBECONFIG", &kubeconfig).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut watches = Watches(command.spawn().unwrap());
    let mut lines = Lines::of(watches.0.stdout.take().unwrap());
    prints(&mut lines, &["ready", "informer ADDED first"]);

    let take = async |server: &Sidecar, held: &mut Value, holder: &str| {
        held["spec"]["holderIdentity"] = holder.into();
        let (status, taken) = send(server, Method::PUT, &format!("{LEASES}/web"), "", held).await;
        assert_eq!(status, 200, "{taken}");
        *held = taken;
    };
    take(&server, &mut held, "second").await;
    prints(&mut lines, &["retry MODIFIED second", "informer MODIFIED second"]);
    server.signal(Signal::KILL);
    drop(server);
    let server = serve(&listen).await;
    take(&server, &mut held, "last").await;
    prints(&mut lines, &["retry MODIFIED last", "informer MODIFIED last", "until MODIFIED last"]);
    send(&server, Method::DELETE, &format!("{LEASES}/web"), "", &Value::Null).await;
    prints(&mut lines, &["retry DELETED last", "informer DELETED last"]);
}

/// Writes `NAME HOLDER` for each state of a Lease that the watcher of kube-rs shows, with its defaults.
fn watch_with_kube_rs(url: &str) -> Lines {
    let client = Client::try_from(Config::new(url.parse().unwrap())).unwrap();
    let leases: Api<Lease> = Api::namespaced(client, "default");
    let (lines, mut shown) = std::io::pipe().unwrap();
    tokio::spawn(async move {
        let mut events = pin!(watcher(leases, watcher::Config::default()).default_backoff());
        while let Some(event) = events.next().await {
            let line = match event {
                Ok(Event::Apply(lease) | Event::InitApply(lease)) => {
                    format!("{} {}", lease.metadata.name.unwrap(), lease.spec.unwrap().holder_identity.unwrap())
                }
                Ok(Event::Delete(lease)) => format!("{} is gone", lease.metadata.name.unwrap()),
                // The watcher lists or watches again by itself.
                Ok(Event::Init | Event::InitDone) | Err(_) => continue,
            };
            if writeln!(shown, "{line}").is_err() {
                return;
            }
        }
    });
    Lines::of(lines)
}

/// Asserts that a watcher shows each change, also those that another server has made meanwhile.
async fn shows_each_change(start: impl FnOnce(&str) -> Lines) {
    let place = Place::new();
    let folder = place.file("leases");
    let serve =
        async |listen: &str| Sidecar::spawn(lease_api(&folder, listen).args(["--watch-interval", "100ms"])).await;
    let (server, other) = (serve(&own_address()).await, serve("127.0.0.1:0").await);
    let listen = server.url().trim_start_matches("http://").to_owned();
    let (_, mut held) = send(&other, Method::POST, LEASES, "", &lease("first")).await;
    let mut lines = start(server.url());
    prints(&mut lines, &["web first"]);
    let mut take = async |holder: &str| {
        held["spec"]["holderIdentity"] = holder.into();
        let (status, taken) = send(&other, Method::PUT, &format!("{LEASES}/web"), "", &held).await;
        assert_eq!(status, 200, "{taken}");
        held = taken;
    };
    take("second").await;
    prints(&mut lines, &["web second"]);
    server.signal(Signal::STOP);
    take("third").await;
    server.signal(Signal::CONT);
    prints(&mut lines, &["web third"]);
    server.signal(Signal::KILL);
    drop(server);
    take("fourth").await;
    let _server = serve(&listen).await;
    prints(&mut lines, &["web fourth"]);
    send(&other, Method::DELETE, &format!("{LEASES}/web"), "", &Value::Null).await;
    prints(&mut lines, &["web is gone"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_watcher_of_kube_rs_goes_on_behind_a_freeze_and_a_restart() {
    shows_each_change(watch_with_kube_rs).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_informer_of_fabric8_goes_on_behind_a_freeze_and_a_restart() {
    let Some(mut informer) = drivers::java("comparison.Informer") else {
        return println!("skipped: no informer, see comparison/build-drivers");
    };
    let mut process = None;
    shows_each_change(|url| {
        informer.env("LEASES", url).stdin(Stdio::null()).stdout(Stdio::piped());
        let child = process.insert(Watches(informer.spawn().unwrap()));
        Lines::of(child.0.stdout.take().unwrap())
    })
    .await;
}
