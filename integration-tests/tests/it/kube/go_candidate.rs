//! A candidate that does what client-go's elector does, request by request: `tools/leaderelection` and its `LeaseLock`.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use hyper::Request;
use kube::{Client, Config};
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// client-go's `LeaderElectionRecord`, as it is in memory.
#[derive(Clone, Debug, Default, PartialEq)]
struct Record {
    holder: String,
    duration_seconds: i64,
    acquired: Option<DateTime<Utc>>,
    renewed: Option<DateTime<Utc>>,
    transitions: i64,
}

impl Record {
    /// `LeaseSpecToLeaderElectionRecord`.
    fn of_spec(spec: &Value) -> Self {
        let time = |name: &str| spec[name].as_str().map(|time| time.parse().expect("a MicroTime"));
        Self {
            holder: spec["holderIdentity"].as_str().unwrap_or_default().to_owned(),
            duration_seconds: spec["leaseDurationSeconds"].as_i64().unwrap_or_default(),
            acquired: time("acquireTime"),
            renewed: time("renewTime"),
            transitions: spec["leaseTransitions"].as_i64().unwrap_or_default(),
        }
    }

    /// `LeaderElectionRecordToLeaseSpec`.
    fn to_spec(&self) -> Value {
        let time = |time: Option<DateTime<Utc>>| time.map(|time| time.to_rfc3339_opts(SecondsFormat::Micros, true));
        json!({
            "holderIdentity": self.holder, "leaseDurationSeconds": self.duration_seconds,
            "acquireTime": time(self.acquired), "renewTime": time(self.renewed), "leaseTransitions": self.transitions,
        })
    }

    /// The JSON by which candidates see a change. Its times have whole seconds.
    fn raw(&self) -> Value {
        let time = |time: Option<DateTime<Utc>>| time.map(|time| time.to_rfc3339_opts(SecondsFormat::Secs, true));
        json!([self.holder, self.duration_seconds, time(self.acquired), time(self.renewed), self.transitions])
    }
}

/// The part of a candidate that others can see.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// The number of the term if the candidate leads.
    pub(super) leads: Option<u64>,
    /// The leader of whom the candidate knows.
    pub(super) leader: String,
    /// The moment since which this has been so.
    pub(super) since: LocalInstant,
}

/// A candidate of client-go in a task. Dropping it is a crash.
pub(super) struct GoCandidate {
    pub(super) view: watch::Receiver<View>,
    cancel: CancellationToken,
    freeze: CancellationToken,
    task: JoinHandle<Elector>,
}

/// A candidate of client-go that does nothing any more, and does not know it.
pub(super) struct Frozen(Elector);

impl Frozen {
    /// Goes on, and is asked at once to end, as `ReleaseOnCancel` does.
    pub(super) async fn goes_on_and_releases(mut self) {
        self.0.release().await;
    }
}

impl GoCandidate {
    pub(super) fn start(config: Config, name: &str, identity: &str, lease: Duration, retry: Duration) -> Self {
        let (told, view) = watch::channel(View::default());
        let (cancel, freeze) = (CancellationToken::new(), CancellationToken::new());
        let namespace = config.default_namespace.clone();
        let mut elector = Elector {
            client: Client::try_from(config).expect("a client"),
            path: format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"),
            name: name.to_owned(),
            identity: identity.to_owned(),
            lease_duration: lease,
            lease: Value::Null,
            observed: Record::default(),
            observed_raw: Value::Null,
            observed_at: Instant::now(),
            told: Arc::new(told),
        };
        let (ends, freezes) = (cancel.clone(), freeze.clone());
        let task = tokio::spawn(async move {
            while !ends.is_cancelled() && !freezes.is_cancelled() {
                elector.try_acquire_or_renew().await;
                tokio::select! {
                    () = sleep(retry) => {}
                    () = ends.cancelled() => elector.release().await,
                    () = freezes.cancelled() => {}
                }
            }
            elector
        });
        Self { view, cancel, freeze, task }
    }

    /// Freezes the candidate between two requests.
    pub(super) async fn freeze(mut self) -> Frozen {
        self.freeze.cancel();
        Frozen((&mut self.task).await.expect("no panic"))
    }

    /// Ends the candidate as `ReleaseOnCancel` does.
    pub(super) async fn release(mut self) {
        self.cancel.cancel();
        (&mut self.task).await.expect("no panic");
    }
}

impl Drop for GoCandidate {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) struct Elector {
    client: Client,
    path: String,
    name: String,
    identity: String,
    lease_duration: Duration,
    /// The Lease of the last answer, which an update sends back with other fields.
    lease: Value,
    observed: Record,
    observed_raw: Value,
    observed_at: Instant,
    told: Arc<watch::Sender<View>>,
}

impl Elector {
    fn is_leader(&self) -> bool {
        self.observed.holder == self.identity
    }

    fn is_lease_valid(&self) -> bool {
        let duration = Duration::from_secs(self.observed.duration_seconds.unsigned_abs());
        self.observed_at + duration > Instant::now()
    }

    /// `tryAcquireOrRenew`.
    async fn try_acquire_or_renew(&mut self) {
        let now = Some(Utc::now());
        let mut record = Record {
            holder: self.identity.clone(),
            duration_seconds: i64::try_from(self.lease_duration.as_secs()).expect("a short lease"),
            acquired: now,
            renewed: now,
            transitions: 0,
        };
        // 1. The fast path of a leader: an update of what it has observed last.
        if self.is_leader() && self.is_lease_valid() {
            let renewed =
                Record { acquired: self.observed.acquired, transitions: self.observed.transitions, ..record.clone() };
            if self.update(renewed).await {
                return;
            }
        }
        // 2. Obtain or create the record.
        let Some(found) = self.request("GET", &format!("/{}", self.name), &Value::Null).await else {
            let metadata = json!({"name": self.name});
            let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": record.to_spec()});
            if let Some(created) = self.request("POST", "", &lease).await {
                self.lease = created;
                self.observe(record);
            }
            return;
        };
        self.lease = found;
        let old = Record::of_spec(&self.lease["spec"]);
        // 3. Check the identity and the time.
        if self.observed_raw != old.raw() {
            self.observe(old.clone());
            self.observed_raw = old.raw();
        }
        if !old.holder.is_empty() && self.is_lease_valid() && !self.is_leader() {
            return;
        }
        // 4. Update.
        if self.is_leader() {
            (record.acquired, record.transitions) = (old.acquired, old.transitions);
        } else {
            record.transitions = old.transitions + 1;
        }
        self.update(record).await;
    }

    /// `tryRelease`. The candidate is the leader by what it has observed before, and not by what it reads here.
    async fn release(&mut self) {
        let found = self.request("GET", &format!("/{}", self.name), &Value::Null).await;
        let (Some(found), true) = (found, self.is_leader()) else { return };
        self.lease = found;
        let now = Some(Utc::now());
        let transitions = Record::of_spec(&self.lease["spec"]).transitions;
        self.update(Record { duration_seconds: 1, acquired: now, renewed: now, transitions, ..Record::default() })
            .await;
    }

    /// `LeaseLock.Update`: the whole last Lease, with other fields.
    async fn update(&mut self, record: Record) -> bool {
        self.lease["spec"] = record.to_spec();
        let lease = self.lease.clone();
        let Some(updated) = self.request("PUT", &format!("/{}", self.name), &lease).await else { return false };
        self.lease = updated;
        self.observe(record);
        true
    }

    fn observe(&mut self, record: Record) {
        self.observed = record;
        self.observed_at = Instant::now();
        let leads = self.is_leader().then_some(self.observed.transitions.unsigned_abs());
        let seen = View { leads, leader: self.observed.holder.clone(), since: SystemClock.now() };
        self.told.send_if_modified(|told| {
            let is_new = (told.leads, &told.leader) != (seen.leads, &seen.leader);
            if is_new {
                *told = seen;
            }
            is_new
        });
    }

    /// Sends a request. There is no answer if it fails, whatever the reason.
    async fn request(&self, method: &str, rest: &str, body: &Value) -> Option<Value> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(format!("{}{rest}", self.path));
        let request = request.header("content-type", "application/json").body(body).expect("a request");
        self.client.request(request).await.ok()
    }
}
