//! The guides docs/from-*.md as they are written, each with a small operator: the code of the page makes the operator of
//! `after.rs` from that of `before.rs`, and the commands of the page roll it out beside old replicas, and back.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::process::Command;

use leaderelection_integration_tests::operators::built;
use leaderelection_integration_tests::servers::kube_api::KubeApi;
use rustix::process::Signal;
use serde_json::json;

use crate::guides::{commands, guide};
use crate::lease_api::drivers;
use crate::serve::process::eventually;
use crate::support::{Place, Running};

/// The blocks of a page in a language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("\n```{language}\n");
    let blocks = page.split(&fence).skip(1);
    blocks.map(|block| block.split_once("\n```").unwrap().0.to_owned() + "\n").collect()
}

/// The lines of a program that a sentence of a page names: "Replace `FIRST` by", or "Replace … from `FIRST` to the end of `FUNCTION`".
fn place(program: &str, sentence: &str) -> Range<usize> {
    let names: Vec<_> = sentence.split('`').skip(1).step_by(2).collect();
    let find =
        |text: &str, from: usize| from + program[from..].find(text).unwrap_or_else(|| panic!("{text}: {sentence}"));
    assert_eq!(program.matches(names[0]).count(), 1, "the page changes what is not there once: {sentence}");
    let start = program[..find(names[0], 0)].rfind('\n').unwrap() + 1;
    let end = if sentence.contains(" to the end of ") {
        find("\n}\n", start.max(find(&format!("fn {}(", names[1]), 0))) + 3
    } else {
        find("\n", start) + 1
    };
    start..end
}

/// A program after the changes of a page. Imports that `after` does not have are left over.
fn changed(program: &str, page: &str, after: &str) -> String {
    let mut changed = program.to_owned();
    let changes = page.split("\nReplace ").skip(1);
    for change in changes {
        // Other sentences have no block.
        let Some((sentence, rest)) = change.split_once(":\n\n") else { continue };
        let Some(rest) = rest.strip_prefix("```rust,ignore\n") else { continue };
        let (block, _) = rest.split_once("```\n").unwrap();
        changed.replace_range(place(&changed, sentence), block);
    }
    let is_left_over = |line: &str| line.starts_with("use ") && !after.lines().any(|other| other == line);
    changed.lines().filter(|line| !is_left_over(line)).map(|line| format!("{line}\n")).collect()
}

/// The source of one of our operators.
fn source(operator: &str, file: &str) -> String {
    guide(&format!("integration-tests/operators/{operator}/{file}"))
}

/// Checks that the operator has what `cargo add` adds.
fn has_crates(operator: &str, page: &str) {
    let manifest = source(operator, "Cargo.toml");
    let added = commands(page).into_iter().filter_map(|command| Some(command.strip_prefix("cargo add ")?.to_owned()));
    for command in added {
        let (names, options) = command.split_once(" --").unwrap_or((command.as_str(), ""));
        for name in names.split(' ') {
            let (name, version) = name.split_once('@').unwrap_or((name, ""));
            let added = options.split(" --").find_map(|option| option.strip_prefix("rename ")).unwrap_or(name);
            let entry = manifest.lines().find(|line| line.starts_with(&format!("{added} = "))).expect(added);
            assert!(entry.contains(name) && entry.contains(&format!("\"{version}")), "{command}: {entry}");
            let features = options.split(" --").filter_map(|option| option.strip_prefix("features "));
            features
                .flat_map(|features| features.split(','))
                .for_each(|feature| assert!(entry.contains(&format!("\"{feature}\"")), "{command}: {entry}"));
        }
    }
}

struct Pod {
    name: String,
    image: usize,
    process: Running,
}

/// The Deployment `operator` in a cluster, which Kubernetes rolls out by its defaults: a new pod is there before an old one is told
/// to end. Of several pods, the leader ends first.
struct Deployment {
    cluster: KubeApi,
    place: Place,
    /// The programs of `operator:1` and `operator:2`.
    images: [PathBuf; 2],
    image: usize,
    pods: Vec<Pod>,
    started: usize,
}

impl Deployment {
    async fn new(images: [PathBuf; 2]) -> Self {
        let (cluster, place) = (KubeApi::start().await, Place::new());
        fs::write(place.path("kubeconfig"), cluster.kubeconfig().to_string()).unwrap();
        for name in ["operator", "status"] {
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
            cluster.config_maps.put(name, map);
        }
        // Some electors want that there is one.
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "operator"},
            "spec": {"holderIdentity": "", "leaseTransitions": 0, "leaseDurationSeconds": 1, "renewTime": "2026-11-30T00:00:00.000000Z"},
        });
        cluster.plant("operator", lease);
        Self { cluster, place, images, image: 1, pods: Vec::new(), started: 0 }
    }

    fn run(&self, mut command: Command, name: &str) -> Running {
        command.env("KUBECONFIG", self.place.path("kubeconfig")).env("POD_NAME", name);
        Running::of(command)
    }

    fn holder(&self) -> String {
        let lease = self.cluster.lease("operator").unwrap_or_default();
        lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    }

    /// Starts a pod. One of `operator:2` is ready once it knows who leads.
    fn start(&mut self) {
        self.started += 1;
        let name = format!("pod-{}", self.started);
        let mut process = self.run(Command::new(&self.images[self.image - 1]), &name);
        if self.image == 2 {
            process.wait_for_line(" leads");
        }
        self.pods.push(Pod { name, image: self.image, process });
    }

    /// Ends one of these pods, and waits until another one works.
    async fn end(&mut self, of_image: impl Fn(usize) -> bool) {
        let holder = self.holder();
        let candidates: Vec<_> = (0..self.pods.len()).filter(|index| of_image(self.pods[*index].image)).collect();
        let leader = candidates.iter().find(|index| self.pods[**index].name == holder);
        let index = *leader.unwrap_or(&candidates[0]);
        let pod = self.pods.remove(index);
        pod.process.signal(Signal::TERM);
        let ended = pod.process.end();
        assert_eq!(ended.code, Some(0), "{}: {}{}", pod.name, ended.stdout, ended.stderr);
        self.works().await;
    }

    /// Waits until a pod that is there leads and works, and returns its name.
    async fn works(&self) -> String {
        eventually("a pod leads and works", async || {
            let by = self.cluster.config_maps.read("operator")?["data"]["reconciled-by"].as_str()?.to_owned();
            self.pods.iter().any(|pod| pod.name == by && by == self.holder()).then_some(by)
        })
        .await
    }

    async fn scale(&mut self, replicas: usize) {
        while self.pods.len() < replicas {
            self.start();
            self.works().await;
        }
        while self.pods.len() > replicas {
            self.end(|_| true).await;
        }
    }

    async fn roll_out(&mut self) {
        let image = self.image;
        while self.pods.iter().any(|pod| pod.image != image) {
            self.start();
            self.end(|other| other != image).await;
        }
    }

    /// Does what a command of a guide does.
    async fn carry_out(&mut self, command: &str) {
        if let Some(replicas) = command.strip_prefix("kubectl scale deployment/operator --replicas=") {
            self.scale(replicas.parse().unwrap()).await;
        } else if let Some(image) = command.strip_prefix("kubectl set image deployment/operator operator=operator:") {
            self.image = image.parse().unwrap();
        } else if command == "kubectl rollout status deployment/operator" {
            self.roll_out().await;
        } else if command == "kubectl get pods" {
            assert!(!self.pods.is_empty());
        } else if command == "kubectl get lease/operator --watch" {
            self.works().await;
        } else {
            panic!("the guide has a command that this test does not know: {command}");
        }
    }

    /// Everybody's work is one piece, in every map.
    fn judge(&self) -> Vec<String> {
        let turns = ["operator", "status"].map(|map| {
            let states = self.cluster.config_maps.history(map).into_iter();
            let mut turns: Vec<_> =
                states.filter_map(|state| Some(state["data"]["reconciled-by"].as_str()?.to_owned())).collect();
            turns.dedup();
            let is_back = |turn: &&String| turns.iter().filter(|other| other == turn).count() > 1;
            assert_eq!(turns.iter().find(is_back), None, "two work at a time: {turns:?}");
            turns
        });
        turns.into_iter().next().unwrap()
    }
}

/// Follows a page with two old replicas, then the way back, and shows that leadership moves on among the new ones.
async fn follow(page: &str, images: [PathBuf; 2]) {
    let rollout = commands(page).into_iter().filter(|command| !command.starts_with("cargo "));
    let rollout: Vec<_> = rollout.collect();
    assert!(rollout.iter().any(|command| command.ends_with("operator:2")), "{rollout:?}");
    let mut deployment = Deployment::new(images).await;
    deployment.scale(2).await;
    for command in &rollout {
        deployment.carry_out(command).await;
    }
    deployment.scale(2).await;
    assert!(deployment.pods.iter().all(|pod| pod.image == 2), "the guide has replaced all");
    let token =
        |deployment: &Deployment| deployment.cluster.lease("operator").unwrap()["spec"]["leaseTransitions"].as_u64();
    let (leader, before) = (deployment.works().await, token(&deployment));
    deployment.end(|_| true).await;
    assert!(deployment.works().await != leader && token(&deployment) > before, "another one leads, by a larger token");
    for command in &rollout {
        deployment.carry_out(&command.replace("operator:2", "operator:1")).await;
    }
    assert!(deployment.pods.iter().all(|pod| pod.image == 1), "the way back is the same with the old image");
    let turns = deployment.judge();
    assert!(turns.len() >= 4, "{turns:?}");
}

async fn from_rust(operator: &str) {
    let page = guide(&format!("docs/from-{operator}.md"));
    has_crates(operator, &page);
    let after = source(operator, "bin/after.rs");
    assert_eq!(changed(&source(operator, "bin/before.rs"), &page, &after), after, "what the page makes");
    let images = ["before", "after"].map(|image| built(operator, &format!("{operator}-{image}")));
    follow(&page, images).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_moves_from_kube_leader_election() {
    from_rust("kube-leader-election").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_moves_from_kubert() {
    from_rust("kubert").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_moves_from_client_go() {
    let page = guide("docs/from-client-go.md");
    has_crates("kube-5", &page);
    let (before, after) =
        (guide("comparison/drivers/go/small-operator/main.go"), guide("integration-tests/operators/client-go/main.rs"));
    for (language, program) in [("go", before), ("rust,ignore", after)] {
        let blocks = blocks(&page, language);
        assert!(!blocks.is_empty() && blocks.iter().all(|block| program.contains(block)), "{language}: {blocks:?}");
    }
    let after = built("kube-5", "operator-client-go");
    let Some(before) = drivers::program("go/small-operator", "client-go") else { return };
    follow(&page, [before, after]).await;
}
