//! Events and a label, by which Kubernetes shows who leads. No decision of an election depends on them.

use std::fmt;
use std::time::Duration;

use chrono::SecondsFormat;
use http::Method;
use leaderelection::causes::{one_line, with_causes};
use leaderelection::handle::{Change, Transition};
use leaderelection::{LeaderHandle, StoreError};
use leaderelection_store_support::request::bounded;
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::error;
use crate::server::{self, Connection, LEASES, Server};
use crate::tokens;

/// The pause before a label is written again after a failure.
const PAUSE: Duration = Duration::from_secs(5);

/// Shows Kubernetes who leads: by Events, and by a label on the leader's pod for a Service that routes to the leader.
///
/// Each process announces its own terms. A failed request is logged, and ends nothing: the election does not wait for this.
///
/// ```no_run
/// use leaderelection::{DefaultLeaderElector, Elector, shutdown_signal};
/// use leaderelection_kubernetes::Announcer;
///
/// # async fn example(elector: DefaultLeaderElector) -> Result<(), Box<dyn std::error::Error>> {
/// let announcer = Announcer::new(kube::Config::infer().await?)?
///     .events_on_lease("default", "scheduler")
///     .label_pod(std::env::var("POD_NAME")?, "team.example/role", "leader");
/// let handle = elector.handle();
/// elector.campaign_with(shutdown_signal(), async move |stop| announcer.announce(handle, stop).await).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Events
///
/// The begin and the end of each term are an Event of the reason `LeaderElection`, as client-go writes it: `pod-1 became
/// leader: ...`, `pod-1 stopped leading: ...`. `kubectl describe lease` and `kubectl get events` show them. The type is
/// `Warning` if the term did not end on purpose.
///
/// # The label
///
/// The pod has the label while its process leads. A process that is killed or cut off leaves the label where it is. The
/// label goes with the pod, and with the next start of the process. So a Service may route to two pods for a while: the
/// label is for clients whom a leader may send on or refuse, and protects nothing.
///
/// # Permissions
///
/// - Events: `create` on `events`; `get` on the Lease or on the pod that they are about.
/// - The label: `patch` on `pods`. This permission cannot be limited to a label, and reaches all pods of the namespace.
#[derive(Clone)]
pub struct Announcer {
    connection: Connection,
    /// The namespace of the pod.
    namespace: String,
    subject: Option<Subject>,
    label: Option<PodLabel>,
}

/// The object that Events are about.
#[derive(Clone)]
struct Subject {
    objects: Server,
    events: Server,
    /// The reference to the object, without its uid.
    reference: Value,
}

#[derive(Clone)]
struct PodLabel {
    pods: Server,
    pod: String,
    key: String,
    value: String,
}

impl Announcer {
    /// Creates an announcer of nothing, with a client of this configuration but without kube's retries. The pod is in the
    /// default namespace of the configuration, which is the pod's own if the configuration is the pod's.
    ///
    /// # Panics
    ///
    /// If it is called outside of a Tokio runtime.
    ///
    /// # Errors
    ///
    /// [`Fatal`](leaderelection::StoreErrorKind::Fatal) if no client can be made of the configuration.
    pub fn new(config: kube::Config) -> Result<Self, StoreError> {
        let namespace = config.default_namespace.clone();
        let again = tokens::same(&config);
        let connection = server::connection(config, again).map_err(|error| error::no_client(&namespace, &error))?;
        Ok(Self { connection, namespace, subject: None, label: None })
    }

    /// Writes Events about this Lease, in its namespace. An empty namespace is that of the pod.
    #[must_use]
    pub fn events_on_lease(self, namespace: &str, name: &str) -> Self {
        let namespace = if namespace.is_empty() { self.namespace.clone() } else { namespace.to_owned() };
        let leases = Server::leases(self.connection.clone(), &namespace);
        self.events_on(leases, json!({"apiVersion": LEASES, "kind": "Lease", "namespace": namespace, "name": name}))
    }

    /// Writes Events about this pod, for an election that has no Lease.
    #[must_use]
    pub fn events_on_pod(self, pod: &str) -> Self {
        let reference = json!({"apiVersion": "v1", "kind": "Pod", "namespace": self.namespace, "name": pod});
        let pods = self.core(&self.namespace, "pods");
        self.events_on(pods, reference)
    }

    fn events_on(mut self, objects: Server, reference: Value) -> Self {
        let events = self.core(reference["namespace"].as_str().unwrap_or_default(), "events");
        self.subject = Some(Subject { objects, events, reference });
        self
    }

    fn core(&self, namespace: &str, plural: &str) -> Server {
        Server::new(self.connection.clone(), "api/v1", namespace, plural)
    }

    /// Gives this label to the pod, the program's own, while the program leads.
    #[must_use]
    pub fn label_pod(mut self, pod: impl Into<String>, key: impl Into<String>, value: impl Into<String>) -> Self {
        let pods = self.core(&self.namespace, "pods");
        self.label = Some(PodLabel { pods, pod: pod.into(), key: key.into(), value: value.into() });
        self
    }

    /// Announces each term of the elector until `stop` is cancelled, or until the elector is dropped. The last end of a term
    /// is announced before this returns, unless the API server takes more than 10 s for a request.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future ends the announcements. The label stays as it is.
    pub async fn announce(&self, mut handle: LeaderHandle, stop: CancellationToken) {
        // A process before this one may have left the label, whether this one leads or not.
        let (mut labelled_for, mut told, mut is_dropped) = (None, None, false);
        loop {
            let is_last = is_dropped || stop.is_cancelled();
            let leads = handle.is_leader();
            if let Some(pod) = &self.label
                && labelled_for != Some(leads)
            {
                labelled_for = pod.follow(leads).await.then_some(leads);
            }
            for transition in fresh(&handle.transitions(), &mut told) {
                self.tell(handle.identity(), &transition).await;
            }
            if is_last {
                return;
            }
            tokio::select! {
                changed = handle.changed() => is_dropped = changed.is_err(),
                () = stop.cancelled() => {}
                () = sleep(PAUSE), if self.label.is_some() && labelled_for.is_none() => {}
            }
        }
    }

    /// Writes the Event of a change, if the change is one of its own terms.
    async fn tell(&self, identity: &str, transition: &Transition) {
        let Some(subject) = &self.subject else { return };
        let (message, kind) = match &transition.change {
            Change::StartedLeading { fencing_token, reason } => {
                (format!("{identity} became leader: {reason} (fencing token {fencing_token})"), "Normal")
            }
            Change::StoppedLeading { fencing_token, reason } => {
                let message = format!("{identity} stopped leading: {reason} (fencing token {fencing_token})");
                (message, if reason.is_on_purpose() { "Normal" } else { "Warning" })
            }
            _ => return,
        };
        if let Err((status, said)) = subject.write(transition, &message, kind).await {
            tracing::warn!(
                event = message,
                status,
                said,
                "no Event was written; allow the verb create on events, or switch Events off"
            );
        }
    }
}

/// The transitions behind the last one that was told.
fn fresh(all: &[Transition], told: &mut Option<Transition>) -> Vec<Transition> {
    let known = told.as_ref().and_then(|told| all.iter().rposition(|each| each == told)).map_or(0, |at| at + 1);
    if let Some(last) = all.last() {
        *told = Some(last.clone());
    }
    all[known..].to_vec()
}

impl Subject {
    async fn write(&self, transition: &Transition, message: &str, kind: &str) -> Result<(), (u16, String)> {
        let name = self.reference["name"].as_str().unwrap_or_default();
        let mut about = self.reference.clone();
        // Without its uid, the Event is shown among all Events, and not with the object.
        if let Ok(object) = request(&self.objects, Method::GET, name, None).await {
            about["uid"] = object["metadata"]["uid"].clone();
        }
        let at = transition.at.to_rfc3339_opts(SecondsFormat::Secs, true);
        let event = json!({
            "apiVersion": "v1", "kind": "Event",
            // The API server cuts a long name, and makes it unique.
            "metadata": {"generateName": format!("{name}."), "namespace": about["namespace"]},
            "involvedObject": about, "reason": "LeaderElection", "message": message, "type": kind,
            "source": {"component": "leaderelection"}, "firstTimestamp": at, "lastTimestamp": at, "count": 1,
        });
        request(&self.events, Method::POST, "", Some(event)).await.map(drop)
    }
}

impl PodLabel {
    /// Makes the label follow leadership. Returns `false` after a failure that may pass.
    async fn follow(&self, leads: bool) -> bool {
        let value = if leads { self.value.as_str().into() } else { Value::Null };
        let patch = json!({"metadata": {"labels": {&self.key: value}}});
        let Err((status, said)) = request(&self.pods, Method::PATCH, &self.pod, Some(patch)).await else {
            return true;
        };
        tracing::warn!(
            pod = self.pod,
            leads,
            status,
            said,
            "the label of the pod was not written; allow the verb patch on pods, or switch the label off"
        );
        // A refusal stays one. Conflicts, throttling and faults of the server pass.
        matches!(status, 400..=499) && !matches!(status, 408 | 409 | 429)
    }
}

/// Sends a request. An error is the status and the text of a refusal; the status is 0 without an answer.
async fn request(server: &Server, method: Method, name: &str, body: Option<Value>) -> Result<Value, (u16, String)> {
    match bounded(server.request_timeout, name, server.send(method, name, body, name)).await {
        Ok(answer) => answer.accepted().map_err(|(status, said)| (status, one_line(&said, 300))),
        Err(error) => Err((0, with_causes(&error))),
    }
}

// Written by hand, because the client may print a secret.
impl fmt::Debug for Announcer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = self.label.as_ref().map(|label| format!("{}={}", label.key, label.value));
        f.debug_struct("Announcer")
            .field("events_on", &self.subject.as_ref().map(|subject| &subject.reference))
            .field("pod", &self.label.as_ref().map(|label| &label.pod))
            .field("label", &label)
            .finish_non_exhaustive()
    }
}
