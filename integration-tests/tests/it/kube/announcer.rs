//! The Events of terms, and the label of the leader's pod.

use leaderelection::implement::ConditionalStoreExt;
use std::time::Duration;

use hyper::{Method, Request};
use kube::Client;
use leaderelection::{DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, ObjectStoreBasedLock as _};
use leaderelection_backends::kubernetes::{Announcer, KubernetesLeaseLock};
use leaderelection_integration_tests::servers::kube_api::KubeApi;
use leaderelection_integration_tests::servers::unique_name;
use leaderelection_integration_tests::timings;
use leaderelection_test_support::logs::warnings_of;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::PATIENCE;
use super::api::Api;
use crate::cloud::kube::Kube;

const LABEL: &str = "tests.example/role";

/// The objects of the core API.
struct Core {
    client: Client,
    namespace: String,
}

impl Core {
    fn of(kube: &Kube) -> Self {
        let config = kube.config();
        Self { namespace: config.default_namespace.clone(), client: Client::try_from(config).expect("a client") }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Value {
        let target = format!("/api/v1/namespaces/{}/{path}", self.namespace);
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(target).header("content-type", "application/json");
        self.client.request(request.body(body).expect("a request")).await.expect("an answer")
    }

    /// Creates a pod that an earlier process has left as the leader's.
    async fn pod_of_a_former_leader(&self, name: &str) {
        let metadata = json!({"name": name, "labels": {LABEL: "leader", "app": "tests"}});
        let spec = json!({"containers": [{"name": "tests", "image": "tests"}]});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
        self.send(Method::POST, "pods", &pod).await;
    }

    async fn label_of(&self, pod: &str) -> Value {
        let labels = self.send(Method::GET, &format!("pods/{pod}"), &Value::Null).await["metadata"]["labels"].take();
        assert_eq!(labels["app"], "tests", "the labels of others stay");
        labels[LABEL].clone()
    }

    async fn label_becomes(&self, pod: &str, wanted: Value) {
        let waiting = async {
            while self.label_of(pod).await != wanted {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("the label of {pod} does not become {wanted}"));
    }

    /// The Events about a Lease, by their messages.
    async fn events(&self, lease: &str) -> Vec<Value> {
        let mut list = self.send(Method::GET, "events", &Value::Null).await;
        let Value::Array(events) = list["items"].take() else { panic!("a listing: {list}") };
        let mut about: Vec<_> = events.into_iter().filter(|event| event["involvedObject"]["name"] == lease).collect();
        about.sort_by_key(|event| event["message"].to_string());
        about
    }
}

/// A candidate in a pod, whose Lease has a label.
fn candidate(kube: &Kube, lease: &str, pod: &str) -> (DefaultLeaderElector, Announcer) {
    let store = kube.lease_store().with_labels([("team", "payments")]);
    let lock = KubernetesLeaseLock::new(store, lease, pod);
    let builder = LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).timings(timings(15_000, 10_000, 200));
    let elector = DefaultLeaderElector::new(builder.release_on_cancel(true).build().expect("timings that fit"));
    let announcer = Announcer::new(kube.config()).expect("a client");
    (elector, announcer.events_on_lease("", lease).label_pod(pod, LABEL, "leader"))
}

async fn campaign(elector: &DefaultLeaderElector, announcer: Announcer, cancel: &CancellationToken) {
    let handle = elector.handle();
    let announcing = async move |stop| announcer.announce(handle, stop).await;
    elector.campaign_with(cancel.clone().cancelled_owned(), announcing).await.expect("it runs");
}

#[tokio::test]
async fn each_term_has_its_events_and_only_the_leaders_pod_has_the_label() {
    let (kube, lease) = (Kube::new().await, unique_name());
    let core = Core::of(&kube);
    let pods = [format!("{lease}-1"), format!("{lease}-2")];
    for pod in &pods {
        core.pod_of_a_former_leader(pod).await;
    }
    let (leader, leaders_announcer) = candidate(&kube, &lease, &pods[0]);
    let (follower, followers_announcer) = candidate(&kube, &lease, &pods[1]);
    let (stop_leader, stop_follower) = (CancellationToken::new(), CancellationToken::new());
    let course = async {
        leader.handle().elected().await.expect("it runs");
        core.label_becomes(&pods[0], json!("leader")).await;
        let following = async {
            core.label_becomes(&pods[1], Value::Null).await;
            assert_eq!(core.label_of(&pods[0]).await, "leader");
            stop_leader.cancel();
            follower.handle().elected().await.expect("it runs");
            core.label_becomes(&pods[1], json!("leader")).await;
            stop_follower.cancel();
        };
        tokio::join!(campaign(&follower, followers_announcer, &stop_follower), following);
    };
    let both = async { tokio::join!(campaign(&leader, leaders_announcer, &stop_leader), course) };
    timeout(PATIENCE, both).await.expect("both lead in time");

    for pod in &pods {
        assert_eq!(core.label_of(pod).await, Value::Null, "{pod} leads no more");
    }
    let events = core.events(&lease).await;
    let messages: Vec<_> = events.iter().map(|event| event["message"].as_str().expect("a text")).collect();
    let [first, second] = &pods;
    let expected = [
        format!("{first} became leader: the lock was new (fencing token 1)"),
        format!("{first} stopped leading: the candidate was told to stop (fencing token 1)"),
        format!("{second} became leader: the lease was free (fencing token 2)"),
        format!("{second} stopped leading: the candidate was told to stop (fencing token 2)"),
    ];
    assert_eq!(messages, expected);
    let (_, lease_object) = Api::of(&kube).send(Method::GET, &lease, &Value::Null).await;
    assert_eq!(lease_object["metadata"]["labels"], json!({"team": "payments"}));
    for event in &events {
        assert_eq!(event["involvedObject"]["uid"], lease_object["metadata"]["uid"], "{event}");
        assert_eq!((&event["reason"], &event["type"]), (&json!("LeaderElection"), &json!("Normal")), "{event}");
        let name = event["metadata"]["name"].as_str().expect("a name");
        core.send(Method::DELETE, &format!("events/{name}"), &Value::Null).await;
    }
    for pod in &pods {
        core.send(Method::DELETE, &format!("pods/{pod}?gracePeriodSeconds=0"), &Value::Null).await;
    }
    kube.lease_store().discard(&lease).await.expect("deleted");
}

#[tokio::test]
async fn a_term_that_did_not_end_on_purpose_has_an_event_of_the_type_warning() {
    let kube = Kube::own(KubeApi::start().await).await;
    let core = Core::of(&kube);
    let (elector, announcer) = candidate(&kube, "scheduler", "pod-1");
    let cancel = CancellationToken::new();
    let losing = async {
        let mut handle = elector.handle();
        handle.elected().await.expect("it runs");
        kube.lease_store().discard("scheduler").await.expect("deleted");
        let lost = |events: &[Value]| {
            events.iter().any(|event| event["message"].to_string().contains("deleted") && event["type"] == "Warning")
        };
        while !lost(&core.events("scheduler").await) {
            sleep(Duration::from_millis(20)).await;
        }
        cancel.cancel();
    };
    let both = async { tokio::join!(campaign(&elector, announcer, &cancel), losing) };
    timeout(PATIENCE, both).await.expect("an Event of the type Warning");
}

#[test]
fn missing_permissions_are_named_and_end_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (warnings, ()) = warnings_of(|| {
        runtime.block_on(async {
            let server = KubeApi::start().await;
            server.deny("create events");
            server.deny("patch pods");
            let kube = Kube::own(server).await;
            let (elector, announcer) = candidate(&kube, "scheduler", "pod-1");
            let cancel = CancellationToken::new();
            let leading = async {
                elector.handle().elected().await.expect("it runs");
                cancel.cancel();
            };
            tokio::join!(campaign(&elector, announcer, &cancel), leading);
            let lock = KubernetesLeaseLock::new(kube.lease_store(), "scheduler", "onlooker");
            assert!(lock.get().await.expect("read").expect("a Lease").record.is_released());
        });
    });
    let of = |text: &str| warnings.iter().filter(|warning| warning.contains(text)).count();
    assert_eq!(of("allow the verb create on events"), 2, "the begin and the end: {warnings:?}");
    assert!(of("allow the verb patch on pods") >= 1 && of("cannot patch resource") >= 1, "{warnings:?}");
}
