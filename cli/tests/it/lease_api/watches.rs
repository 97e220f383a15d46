//! The watches of client-go, as they are, on the real server: they go on when it was killed.

use std::cell::RefCell;
use std::process::{Child, Command, Stdio};

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
