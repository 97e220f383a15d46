//! `kubectl` itself, as it is, on the real server.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{LEASES, drivers, lease, lease_api, send};
use crate::peers::own_address;
use crate::serve::sidecar::Sidecar;
use crate::support::{Lines, Place};

/// A person with a kubeconfig that the server has written.
struct Person {
    program: PathBuf,
    place: Place,
}

impl Person {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).env("KUBECONFIG", self.place.path("kubeconfig")).env("HOME", self.place.path("home"));
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command that has to succeed, and returns its output.
    fn says(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn watch(&self) -> (Watch, Lines) {
        let mut process = self.command(&["get", "leases", "-A", "-w"]).stdout(Stdio::piped()).spawn().unwrap();
        let lines = Lines::of(process.stdout.take().unwrap());
        (Watch(process), lines)
    }

    async fn serve(&self, listen: &str) -> Sidecar {
        let kubeconfig = self.place.path("kubeconfig");
        let mut command = lease_api(&self.place.file("leases"), listen);
        Sidecar::spawn(command.arg("--kubeconfig").arg(kubeconfig).args(["--watch-interval", "100ms"])).await
    }
}

/// A process that is ended when dropped.
struct Watch(Child);

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for a line with these words.
fn shows(lines: &mut Lines, words: &[&str]) {
    let found = lines.wait_for(|line| {
        let line: Vec<_> = line.split_whitespace().collect();
        line.starts_with(words).then_some(())
    });
    found.unwrap_or_else(|seen| panic!("no line begins with {words:?}: {seen:?}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_watch_change_and_delete_leases() {
    let Some(program) = drivers::file("go/kubectl") else {
        return println!(
            "skipped: LEADERELECTION_TEST_DRIVERS names no folder with kubectl, see comparison/build-drivers"
        );
    };
    let person = Person { program, place: Place::new() };
    let server = person.serve(&own_address()).await;
    let listen = server.url().trim_start_matches("http://").to_owned();
    let (status, held) = send(&server, Method::POST, LEASES, "", &lease("a")).await;
    assert_eq!(status, 201, "{held}");
    let (watch, mut lines) = person.watch();
    shows(&mut lines, &["NAMESPACE", "NAME", "HOLDER", "AGE"]);
    shows(&mut lines, &["default", "web", "a"]);
    let mut taken = held.clone();
    taken["spec"]["holderIdentity"] = "b".into();
    assert_eq!(send(&server, Method::PUT, &format!("{LEASES}/web"), "", &taken).await.0, 200);
    shows(&mut lines, &["default", "web", "b"]);

    // The server is killed. Nothing was in it.
    server.signal(Signal::KILL);
    drop((server, watch));
    let refused = person.run(&["get", "leases", "-A"]);
    assert!(!refused.status.success());
    let server = person.serve(&listen).await;
    let (_watch, mut lines) = person.watch();
    shows(&mut lines, &["default", "web", "b"]);

    let manifest = person.place.path("janitor.json");
    let mut janitor = lease("c");
    janitor["metadata"]["name"] = "janitor".into();
    std::fs::write(&manifest, janitor.to_string()).unwrap();
    let file = manifest.to_str().unwrap();
    let differs = person.run(&["diff", "-f", file]);
    assert_eq!(differs.status.code(), Some(1), "{}", String::from_utf8_lossy(&differs.stderr));
    assert!(!person.says(&["get", "leases", "-A"]).contains("janitor"), "a read creates nothing");
    assert!(person.says(&["apply", "-f", file]).contains("created"));
    shows(&mut lines, &["default", "janitor", "c"]);
    assert!(person.says(&["apply", "-f", file]).contains("unchanged"));
    assert!(person.says(&["apply", "--server-side", "--force-conflicts", "-f", file]).contains("serverside-applied"));
    person.says(&["label", "lease", "janitor", "app=web"]);
    assert_eq!(
        person.says(&["get", "leases", "-l", "app=web", "-o", "name"]).trim(),
        "lease.coordination.k8s.io/janitor"
    );
    let freed = json!({"spec": {"holderIdentity": ""}}).to_string();
    person.says(&["patch", "lease", "janitor", "--type", "merge", "-p", &freed]);
    person.says(&["wait", "lease/janitor", "--for=jsonpath={.metadata.labels.app}=web", "--timeout=20s"]);
    assert!(person.says(&["explain", "lease"]).contains("coordination.k8s.io"));
    assert!(person.says(&["describe", "lease", "web"]).contains("leaderelection/token"));
    assert!(person.says(&["delete", "lease", "janitor"]).contains("deleted"));
    let (_, all) = send(&server, Method::GET, LEASES, "", &Value::Null).await;
    assert_eq!(all["items"].as_array().unwrap().len(), 1, "{all}");
}
