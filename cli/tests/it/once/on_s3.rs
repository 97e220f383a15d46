//! The same on an S3 server, whose answers are lost at the worst moments.

use std::fs;
use std::path::Path;
use std::process::Command;

use leaderelection_integration_tests::proxy::{Delivery, Fault, Kind, Proxy, Reply, Request};
use leaderelection_integration_tests::servers::seaweedfs::SeaweedFs;
use rustix::process::Signal;
use tokio::runtime::Runtime;

use super::{job, run};
use crate::support::{Ended, LONG, Place, Running, TIMINGS, end_of, leaderelect};

/// A server, and a network in front of it that loses answers.
struct Network {
    runtime: Runtime,
    server: SeaweedFs,
    proxy: Proxy,
}

impl Network {
    fn start() -> Self {
        let server = SeaweedFs::start(Path::new(env!("CARGO_TARGET_TMPDIR")));
        let runtime = Runtime::new().unwrap();
        runtime.block_on(server.create_bucket("bucket"));
        let proxy = runtime.block_on(Proxy::start(&server.url(), server.signer()));
        Self { runtime, server, proxy }
    }

    fn lock(&self, name: &str) -> String {
        format!("s3://bucket/locks/{name}?endpoint={}", self.proxy.url())
    }

    fn program(&self, args: &[&str]) -> Command {
        let mut command = leaderelect(args);
        command.envs(self.server.environment());
        command
    }

    fn end(&self, args: &[&str]) -> Ended {
        end_of(self.program(args))
    }

    /// Waits until a fault was applied to a write of this kind, and that write is committed if it is to be committed.
    fn wait_for_spoilt(&self, lock: &str, kind: Kind, commits: bool) {
        let object = format!("/locks/{lock}?");
        self.runtime.block_on(self.proxy.wait_for("a write is spoilt", |traffic| {
            let of_lock = traffic.iter().filter(|exchange| exchange.request.target.contains(&object));
            let mut spoilt = of_lock.filter(|exchange| exchange.kind == kind && exchange.fault.is_some());
            spoilt.any(|exchange| exchange.committed() == commits)
        }));
    }
}

/// The fault of a request that is carried out, and whose answer is lost.
fn answer_lost(reply: Reply) -> Fault {
    Fault::new(Delivery::Once, reply)
}

fn is(kind: Kind) -> impl Fn(&Request) -> bool {
    move |request| request.kind() == kind
}

#[test]
fn ten_hosts_run_a_job_once_in_each_night_while_answers_are_lost() {
    let (network, place) = (Network::start(), Place::new());
    let log = place.path("log");
    let command = format!("echo ran >>{}; sleep 0.2", log.display());
    for night in 0..3_usize {
        let (name, lock) = (format!("night-{night}"), network.lock("nightly"));
        network.proxy.forget_faults();
        // The host that wins learns of its win and of its release from reads alone.
        for kind in [Kind::Create, Kind::Takeover, Kind::Release] {
            network.proxy.spoil(0, is(kind), answer_lost(Reply::Cut));
        }
        for nth in (1 + night..100).step_by(5) {
            network.proxy.spoil(nth, is(Kind::Read), answer_lost(Reply::Status(500)));
        }
        let hosts: Vec<_> = (0..10)
            .map(|_| Running::of(network.program(&run(&lock, &job(&LONG, &name), &["sh", "-c", &command]))))
            .collect();
        let ends: Vec<_> = hosts.into_iter().map(Running::end).collect();
        assert!(ends.iter().all(|end| end.code == Some(0)), "{ends:?}");
        let idle = ends.iter().filter(|end| end.stderr.contains("is already done; the command was not run"));
        assert_eq!(idle.count(), 9, "{ends:?}");
        assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), night + 1);
        assert!(
            network.proxy.traffic().iter().any(|exchange| exchange.kind == Kind::Release && exchange.fault.is_some())
        );
    }
}

/// Runs the first host until the proxy has spoilt its write of this kind, kills that host, and runs the next one. From
/// that write on, the first host has no network, so that it learns nothing however late it is killed.
fn after_a_death_at(network: &Network, name: &str, kind: Kind, fault: Fault) -> Ended {
    let lock = &network.lock(name);
    let yesterday = network.end(&run(lock, &job(&LONG, "yesterday"), &["true"]));
    assert_eq!(yesterday.code, Some(0), "{yesterday:?}");
    network.proxy.spoil_from(0, is(kind), fault, Fault::new(Delivery::Never, Reply::Silence));
    let options = [&job(&TIMINGS, "today")[..], &["--identity", "first"]].concat();
    let first = Running::of(network.program(&run(lock, &options, &["true"])));
    network.wait_for_spoilt(name, kind, fault.delivery == Delivery::Once);
    first.signal(Signal::KILL);
    first.wait();
    network.proxy.forget_faults();
    network.end(&run(lock, &job(&TIMINGS, "today"), &["echo", "ran"]))
}

#[test]
fn the_next_host_runs_the_job_of_a_host_that_died_before_its_mark() {
    let network = Network::start();
    let silent = answer_lost(Reply::Silence);
    // The host has the lease and does not know that, so its command has not begun.
    let next = after_a_death_at(&network, "before-it-starts", Kind::Takeover, silent);
    assert_eq!((next.code, next.stdout.as_str()), (Some(0), "ran\n"), "{next:?}");
    assert!(next.stderr.contains("first held the lease and did not record that job today is done"), "{next:?}");
    // The command has succeeded, and the mark is in flight forever.
    let held = Fault::new(Delivery::Held, Reply::Silence);
    let next = after_a_death_at(&network, "before-the-mark", Kind::Release, held);
    assert_eq!((next.code, next.stdout.as_str()), (Some(0), "ran\n"), "{next:?}");
    assert!(next.stderr.contains("first held the lease and did not record that job today is done"), "{next:?}");
    // The mark is committed, and its host has died without knowing that.
    let next = after_a_death_at(&network, "after-the-mark", Kind::Release, silent);
    assert_eq!((next.code, next.stdout.as_str()), (Some(0), ""), "{next:?}");
    assert!(next.stderr.contains("today is already done; the command was not run"), "{next:?}");
}
