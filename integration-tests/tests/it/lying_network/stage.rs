//! Candidates for one lock, each behind a network of its own, and their observed events.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection::implement::{ConditionalStore, VersionedRecord};
use leaderelection::{
    DefaultLeaderElector, ElectionError, Elector, LeaderCallbacks, LeaderElectionConfig, LeaderElectionConfigBuilder,
    LeaderElectionRecord, LeaderHandle, ObjectLock, ObjectStoreBasedLock as _, RunOutcome, TermEndReason, Timings,
};
use leaderelection_integration_tests::history::Recorded;
use leaderelection_integration_tests::proxy::{Exchange, Fault, Kind, Proxy};
use leaderelection_integration_tests::servers::unique_name;
use leaderelection_integration_tests::timings;
use leaderelection_test_support::faulty::Faulty;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::PATIENCE;
use crate::cloud::Cloud;

/// One lock on one server.
pub(super) struct Stage {
    cloud: Arc<Cloud>,
    pub(super) timings: Timings,
    /// The lock without a proxy.
    direct: ObjectLock<Arc<dyn ConditionalStore>>,
}

impl Stage {
    /// A lock for a test that waits for no lease. The lease outlasts a machine that stalls for several seconds, and a request
    /// without an answer is soon given up.
    pub(super) async fn new(cloud: &Arc<Cloud>) -> Self {
        let long = timings(24_000, 16_000, 300);
        let request_timeout = long.renew_deadline() / 10;
        Self::with(cloud, long.with_request_timeout(request_timeout).expect("timings that fit")).await
    }

    /// A lock for a test that waits for the end of a lease. A machine may stall for some seconds.
    pub(super) async fn expiring(cloud: &Arc<Cloud>) -> Self {
        Self::with(cloud, timings(7_500, 5_000, 300)).await
    }

    async fn with(cloud: &Arc<Cloud>, quick: Timings) -> Self {
        let key = cloud.key();
        let store = Recorded::new(cloud.store().await, &key, cloud.history());
        let direct = ObjectLock::new(store as Arc<dyn ConditionalStore>, key, "observer");
        Self { cloud: Arc::clone(cloud), timings: cloud.timings(quick), direct }
    }

    pub(super) async fn candidate(&self, name: &str) -> Candidate {
        self.candidate_with(name, |builder| builder).await
    }

    pub(super) async fn candidate_with(
        &self,
        name: &str,
        change: impl FnOnce(LeaderElectionConfigBuilder) -> LeaderElectionConfigBuilder,
    ) -> Candidate {
        let proxy = self.cloud.proxy().await;
        let store = Recorded::new(self.cloud.store_by(&proxy).await, self.direct.key(), self.cloud.history());
        let store = Faulty::around(store as Arc<dyn ConditionalStore>);
        let calls = store.clone();
        let journal = Arc::new(watch::Sender::default());
        let lock = ObjectLock::new(store, self.direct.key(), name);
        let builder =
            LeaderElectionConfig::builder(lock, callbacks(&journal)).timings(self.timings).release_on_cancel(true);
        let config = change(builder).build().expect("timings that fit");
        let elector = Arc::new(DefaultLeaderElector::new(config));
        let cancel = CancellationToken::new();
        let (handle, deadline) = (elector.handle(), self.timings.renew_deadline());
        let sends_one_request = self.cloud.sends_one_request();
        Candidate { proxy, handle, deadline, elector, journal, calls, sends_one_request, cancel, running: None }
    }

    /// Returns the stored record.
    pub(super) async fn stored(&self) -> VersionedRecord {
        self.direct.get().await.expect("read past the proxies").expect("a record")
    }

    /// Returns `true` if a record exists.
    pub(super) async fn exists(&self) -> bool {
        self.direct.get().await.expect("read past the proxies").is_some()
    }

    /// Returns the holder and the token of the stored record.
    pub(super) async fn holder(&self) -> (String, u64) {
        let record = self.stored().await.record;
        (record.holder_identity, record.leader_transitions)
    }

    /// Stores the first record, which is released, so that the first candidate takes it over.
    pub(super) async fn plant_released(&self, token: u64) {
        let mut record = LeaderElectionRecord::new("", Duration::from_secs(1));
        record.leader_transitions = token;
        record.write_id = Some(unique_name());
        self.direct.create(&record).await.expect("nothing there");
    }
}

/// An event of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Started(u64),
    WorkEnded,
    Stopped,
}

pub(super) use Event::{Started, Stopped, WorkEnded};

#[derive(Clone, Copy, Debug)]
pub(super) struct Noted {
    pub(super) event: Event,
    pub(super) at: LocalInstant,
    /// The end of the term's window, as known at the event.
    pub(super) valid_until: LocalInstant,
}

type Journal = watch::Sender<Vec<Noted>>;

pub(super) struct Candidate {
    pub(super) proxy: Proxy,
    pub(super) handle: LeaderHandle,
    deadline: Duration,
    elector: Arc<DefaultLeaderElector>,
    journal: Arc<Journal>,
    calls: Faulty<Arc<dyn ConditionalStore>>,
    sends_one_request: bool,
    cancel: CancellationToken,
    running: Option<JoinHandle<Result<RunOutcome, ElectionError>>>,
}

/// Returns the outcome of a term.
pub(super) fn led(fencing_token: u64, reason: TermEndReason) -> RunOutcome {
    RunOutcome::Led { fencing_token: fencing_token.into(), reason }
}

impl Candidate {
    /// Spoils the `nth` request of a kind from now on, counted from 0.
    pub(super) fn spoil(&self, nth: usize, kind: Kind, fault: Fault) {
        self.proxy.spoil(nth, move |request| request.kind() == kind, fault);
    }

    /// Starts to compete for one term.
    pub(super) fn run(&mut self) {
        let (elector, cancel) = (Arc::clone(&self.elector), self.cancel.clone());
        self.running = Some(tokio::spawn(async move { elector.run(cancel.cancelled_owned()).await }));
    }

    /// Starts to compete repeatedly.
    pub(super) fn campaign(&mut self) {
        let (elector, cancel) = (Arc::clone(&self.elector), self.cancel.clone());
        self.running = Some(tokio::spawn(async move {
            elector.campaign(cancel.cancelled_owned()).await.map(|()| RunOutcome::NeverLed)
        }));
    }

    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Waits until the elector has ended, by itself or after a cancellation.
    pub(super) async fn ended(&mut self) -> Result<RunOutcome, ElectionError> {
        let running = self.running.take().expect("it runs");
        timeout(PATIENCE, running).await.expect("it ends").expect("no panic")
    }

    pub(super) fn journal(&self) -> Vec<Noted> {
        self.journal.borrow().clone()
    }

    pub(super) fn events(&self) -> Vec<Event> {
        self.journal().iter().map(|noted| noted.event).collect()
    }

    /// Waits for an event, and returns its first occurrence.
    pub(super) async fn wait_for(&self, event: Event) -> Noted {
        let mut journal = self.journal.subscribe();
        let has_happened = |journal: &Vec<Noted>| journal.iter().any(|noted| noted.event == event);
        match timeout(PATIENCE, journal.wait_for(has_happened)).await {
            Ok(journal) => *journal.expect("kept").iter().find(|noted| noted.event == event).expect("it happened"),
            Err(_) => panic!("in vain: {event:?}; {:?}, {:#?}", self.journal(), self.proxy.traffic()),
        }
    }

    /// Waits for this number of further renewals that took effect and were truthfully answered.
    pub(super) async fn wait_for_renewals(&self, more: usize) {
        let after = self.proxy.traffic().len();
        let is_good =
            |exchange: &&Exchange| exchange.kind == Kind::Renewal && exchange.committed() && exchange.was_honest();
        let holds = |traffic: &[Exchange]| traffic[after..].iter().filter(is_good).count() >= more;
        self.proxy.wait_for("renewals", holds).await;
    }

    /// Waits until the candidate knows the leader.
    pub(super) async fn wait_for_leader(&self, name: &str) {
        let mut handle = self.handle.clone();
        let waiting = async {
            while handle.leader().as_deref() != Some(name) {
                handle.changed().await.expect("the elector is there");
            }
        };
        timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("in vain: {name} leads"));
    }

    /// Returns the requests of a kind so far.
    pub(super) fn requests(&self, kind: Kind) -> Vec<Exchange> {
        self.proxy.traffic().into_iter().filter(|exchange| exchange.kind == kind).collect()
    }

    /// Returns the writes of a kind so far whose sender could know what had become of all its earlier writes: the server had
    /// answered them when the last read in between arrived, or when the write itself arrived if there was no read. No read shows
    /// a write that a slow server has not carried out yet.
    pub(super) fn informed(&self, kind: Kind) -> Vec<Exchange> {
        let (mut informed, mut earlier, mut read) = (Vec::new(), Vec::<Exchange>::new(), None);
        for exchange in self.proxy.traffic() {
            match exchange.kind {
                Kind::Read => read = Some(exchange.arrived),
                Kind::Other => {}
                _ => {
                    let asked = read.take().unwrap_or(exchange.arrived);
                    let is_known = |write: &Exchange| write.answered.is_some_and(|answered| answered <= asked);
                    if exchange.kind == kind && earlier.iter().all(is_known) {
                        informed.push(exchange.clone());
                    }
                    earlier.push(exchange);
                }
            }
        }
        informed
    }

    /// Cancels a leader with this token in its first term, and checks that the term ends gracefully.
    pub(super) async fn retire(&mut self, stage: &Stage, token: u64) {
        self.cancel();
        let outcome = self.ended().await.expect("it ran");
        assert_eq!(outcome, led(token, TermEndReason::Cancelled));
        assert_eq!(self.events(), [Started(token), WorkEnded, Stopped]);
        assert_eq!(stage.holder().await, (String::new(), token), "released");
    }

    /// Checks that every request came from the elector, and that no term was longer than a renew deadline after
    /// the last write that could have extended it.
    pub(super) fn check(&self) {
        let (traffic, calls) = (self.proxy.traffic(), self.calls.requests());
        let requests = traffic.iter().filter(|exchange| !exchange.request.opens_session()).count();
        assert!(!self.sends_one_request || requests <= calls, "{requests} requests for {calls} calls: {traffic:#?}");
        for noted in self.journal() {
            // The write arrived after it was sent, and the window counts from before the write was sent.
            let could_have = |exchange: &&Exchange| exchange.committed() && exchange.arrived < noted.at;
            let sent = traffic.iter().filter(could_have).filter(|exchange| exchange.kind != Kind::Read);
            let latest = sent.map(|exchange| exchange.arrived).max().expect("a term begins with a write");
            assert!(noted.valid_until <= latest + self.deadline, "{noted:?} by a write of {latest:?}");
        }
    }
}

fn note(journal: &Journal, event: Event, valid_until: Option<LocalInstant>) {
    journal.send_modify(|journal| {
        let valid_until = valid_until.or(journal.last().map(|noted| noted.valid_until)).unwrap_or_default();
        journal.push(Noted { event, at: SystemClock.now(), valid_until });
    });
}

fn callbacks(journal: &Arc<Journal>) -> LeaderCallbacks {
    let (starting, stopping) = (Arc::clone(journal), Arc::clone(journal));
    LeaderCallbacks::new()
        .on_start_leading(move |leadership| {
            let journal = Arc::clone(&starting);
            note(&journal, Started(leadership.fencing_token().into()), Some(leadership.valid_until()));
            async move {
                leadership.lost().await;
                note(&journal, WorkEnded, Some(leadership.valid_until()));
            }
        })
        .on_stop_leading(move || note(&stopping, Stopped, None))
}
