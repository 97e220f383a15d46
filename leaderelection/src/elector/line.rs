//! The channel between an elector and its peers: the messages that a follower gets, and the writes that a leader reports.

pub(crate) mod inbox;
mod saved;

use std::mem::replace;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::watch;

use inbox::Inbox;
use saved::SavedReads;

use crate::clock::LocalInstant;
use crate::config::LeaderElectionConfig;
use crate::election::{Effect, Election, Fact, PeerMessage, Request};
use crate::handle::tuning::Tuning;
use crate::leadership::Leadership;
use crate::lock::record::LeaderElectionRecord;
use crate::store::Version;
use crate::term::FencingToken;
use crate::timings::Timings;

/// The elector's end of the channel to its peers. It allocates nothing until somebody opens the other end, a [`PeerChannel`].
#[derive(Debug, Default)]
pub(super) struct ElectorEnd(OnceLock<Box<Open>>);

#[derive(Debug)]
struct Open {
    inbox: Arc<Inbox<PeerMessage>>,
    led: Led,
    followed: watch::Sender<Option<ObservedTerm>>,
    saved: SavedReads,
}

/// A committed write: the record, and its version.
type Written = (Arc<LeaderElectionRecord>, Version);

/// Publishes the term of a leader, or the time for which a session is open, to the peers.
#[derive(Debug, Default)]
pub(crate) struct Led(watch::Sender<Option<LeaderTerm>>);

/// The most released locks that a report names. By default, a member hands over at most this many at a time. If a
/// report leaves out a released lock, peers have to scan all locks.
#[cfg(feature = "sessions")]
const NAMED: usize = 128;

/// The most unread messages that an elector keeps.
const MAX_UNREAD: usize = 8;

/// The channel of one elector to its peers, or of a session to one other session, for a crate that connects them over a network.
///
/// A clone is the same channel. The channel does not keep its elector alive.
#[derive(Clone, Debug)]
pub struct PeerChannel {
    lock: Arc<str>,
    name: Arc<str>,
    end: End,
    led: watch::Receiver<Option<LeaderTerm>>,
    followed: watch::Receiver<Option<ObservedTerm>>,
    saved_reads: Arc<AtomicU64>,
}

/// The elector or the session that gets the messages.
#[derive(Clone, Debug)]
enum End {
    Elector {
        tuning: Arc<Tuning>,
        inbox: Arc<Inbox<PeerMessage>>,
    },
    #[cfg(feature = "sessions")]
    Session(SessionEnd),
}

/// A session that gets messages from one other session.
#[cfg(feature = "sessions")]
#[derive(Clone, Debug)]
pub(crate) struct SessionEnd {
    pub(crate) timings: Timings,
    /// The ID of the other session.
    pub(crate) id: Arc<str>,
    pub(crate) inbox: Arc<Inbox<(Arc<str>, PeerMessage)>>,
}

/// A term of this elector, or the time for which a session is open, for reports to peers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LeaderTerm {
    /// The term. Report it as continuing only while it [is valid](Leadership::is_valid).
    pub leadership: Leadership,
    /// The last write of the term that is known to be committed.
    pub last: CommittedWrite,
    /// The write that has released the lease after the end of the term; `None` if no release is known.
    pub released: Option<CommittedWrite>,
    /// The locks that a session has released one by one; `None` for the term of an elector.
    pub releases: Option<Releases>,
}

/// The locks that a session has released one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Releases {
    /// The number of all releases so far.
    pub count: u64,
    /// The hashes of the names of the last 128 released locks, newest first.
    pub locks: Vec<u64>,
}

/// A write that is known to be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommittedWrite {
    /// The record as written.
    pub record: Arc<LeaderElectionRecord>,
    /// The version that the store gave to the write.
    pub version: Version,
    /// The number of the write: 1 for the first one that is reported in the term, and 1 more for each later one.
    pub number: u64,
}

/// The term of another leader, as last shown by the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObservedTerm {
    /// The holder of the lease.
    pub holder: String,
    /// The token of the term.
    pub fencing_token: FencingToken,
    /// The address that the holder advertises in this term.
    pub address: Option<String>,
}

impl PeerChannel {
    /// The name of the lock, the same for all candidates: its object's key, or its description if it has no object.
    #[must_use]
    pub fn lock_name(&self) -> String {
        self.lock.to_string()
    }

    /// The name of the elector in logs and metrics.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The present durations of the election, which [can change](crate::LeaderHandle::reconfigure).
    #[must_use]
    pub fn timings(&self) -> Timings {
        match &self.end {
            End::Elector { tuning, .. } => tuning.timings(),
            #[cfg(feature = "sessions")]
            End::Session(session) => session.timings,
        }
    }

    /// Delivers a peer's message. Rules 15 to 17 of the [protocol](crate::protocol) define its effect on an elector, and rule S10 its
    /// effect on a session.
    ///
    /// The elector reads messages only while it runs and follows. The newest eight unread messages are kept.
    pub fn deliver(&self, message: PeerMessage) {
        match &self.end {
            End::Elector { tuning, inbox } => {
                inbox.put(message);
                tuning.wake_elector.notify_one();
            }
            #[cfg(feature = "sessions")]
            End::Session(session) => session.inbox.put((Arc::clone(&session.id), message)),
        }
    }

    /// Watches the elector's own terms: `None` before the first term, and after a run whose last lease was not released. A slow reader
    /// misses writes, but delays nothing. The watch closes when the elector is dropped.
    #[must_use]
    pub fn led(&self) -> watch::Receiver<Option<LeaderTerm>> {
        self.led.clone()
    }

    /// Watches the term that the elector follows: `None` while it does not run, while it leads itself, and while nobody
    /// holds the lease. The watch closes when the elector is dropped.
    #[must_use]
    pub fn followed(&self) -> watch::Receiver<Option<ObservedTerm>> {
        self.followed.clone()
    }

    /// Returns the number of reads that the leader's messages have saved so far. Without messages, a follower reads once per mean
    /// pause (rule 20). If messages stretch the time between two reads to n mean pauses, they have saved n - 1 reads.
    #[must_use]
    pub fn saved_reads(&self) -> u64 {
        self.saved_reads.load(Ordering::Relaxed)
    }
}

#[cfg(feature = "sessions")]
impl PeerChannel {
    /// Creates the channel of the session `name` to another session, whose object has the key `lock`.
    pub(crate) fn of_session(lock: Arc<str>, name: Arc<str>, end: SessionEnd, followed: Option<ObservedTerm>) -> Self {
        let ((_, led), (_, followed)) = (watch::channel(None), watch::channel(followed));
        Self { lock, name, end: End::Session(end), led, followed, saved_reads: Arc::default() }
    }
}

impl Led {
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<LeaderTerm>> {
        self.0.subscribe()
    }

    /// Tells the peers that a write of the term is committed, and that the term continues.
    pub(crate) fn committed(&self, leadership: &Leadership, (record, version): Written) {
        self.0.send_modify(|led| {
            let token = leadership.fencing_token();
            let before = led.take().filter(|led| led.leadership.fencing_token() == token);
            // Numbers grow within a term, so that a peer recognizes a late message as old (rule 15).
            let number = before.as_ref().map_or(1, |led| led.last.number + 1);
            let releases = before.and_then(|led| led.releases);
            let last = CommittedWrite { record, version, number };
            *led = Some(LeaderTerm { leadership: leadership.clone(), last, released: None, releases });
        });
    }

    /// Tells the peers that the session has released the lock whose name has the hash `lock`. `count` is the number of releases so far.
    #[cfg(feature = "sessions")]
    pub(crate) fn let_go(&self, count: u64, lock: u64) {
        self.0.send_modify(|led| {
            let Some(led) = led else { return };
            let releases = led.releases.get_or_insert_default();
            releases.count = count;
            let locks = &mut releases.locks;
            locks.insert(0, lock);
            locks.truncate(NAMED);
        });
    }

    /// Tells the peers that the lease of a term was released.
    pub(crate) fn released(&self, (record, version): Written) {
        self.0.send_if_modified(|led| {
            // A lease may be released although its term never began. The release must not be reported as the end of an earlier term.
            let is_of_term = |led: &&mut LeaderTerm| led.leadership.fencing_token() == record.leader_transitions;
            let Some(led) = led.as_mut().filter(is_of_term) else { return false };
            led.released = Some(CommittedWrite { record, version, number: led.last.number + 1 });
            true
        });
    }
}

impl ObservedTerm {
    /// Describes another session. The token is the default one, because a session has only one term.
    #[cfg(feature = "sessions")]
    pub(crate) fn of_session(holder: &str, address: Option<&str>) -> Self {
        Self { holder: holder.to_owned(), fencing_token: FencingToken::default(), address: address.map(str::to_owned) }
    }

    fn of(record: &LeaderElectionRecord) -> Self {
        Self {
            holder: record.holder_identity.clone(),
            fencing_token: record.leader_transitions.into(),
            address: record.leader_address().map(str::to_owned),
        }
    }
}

impl ElectorEnd {
    /// Returns the other end of the channel.
    pub(super) fn open(&self, config: &LeaderElectionConfig, tuning: &Arc<Tuning>) -> PeerChannel {
        let open = self.0.get_or_init(|| {
            let (led, followed) = (Led::default(), watch::Sender::new(None));
            Box::new(Open { inbox: Arc::new(Inbox::new(MAX_UNREAD)), led, followed, saved: SavedReads::default() })
        });
        let lock = config.lock.object().map_or_else(|| config.lock.describe(), |(_, key)| key.to_owned());
        PeerChannel {
            lock: lock.into(),
            name: config.basics.name.as_str().into(),
            end: End::Elector { tuning: Arc::clone(tuning), inbox: Arc::clone(&open.inbox) },
            led: open.led.subscribe(),
            followed: open.followed.subscribe(),
            saved_reads: open.saved.total(),
        }
    }

    /// Reacts to an effect of the election, just before the driver carries it out.
    pub(super) fn on_effect(&self, now: LocalInstant, effect: &Effect, election: &Election) {
        let Some(open) = self.0.get() else { return };
        match effect {
            Effect::Send(Request::Read) => {
                open.saved.on_read_sent(now, election.listens().then(|| election.mean_pause()));
            }
            Effect::Fact(Fact::WriteReported | Fact::EndReported) => open.saved.on_message(),
            Effect::Fact(Fact::Released) => drop(election.share_observed().map(|written| open.led.released(written))),
            _ => {}
        }
    }

    /// Returns the next message, if there is one. Each message also wakes the elector.
    pub(super) fn next_message(&self) -> Option<PeerMessage> {
        self.0.get()?.inbox.pop()
    }

    /// Updates the term that this elector follows, after a read or a write of the lock.
    pub(super) fn observed(&self, election: &Election) {
        let Some(open) = self.0.get() else { return };
        let record = election.observed().map(|(record, _)| record);
        let record = record.filter(|record| election.listens() && !record.is_released());
        // A renewal causes no notification, because a follower connects again only for another term or address.
        open.followed.send_if_modified(|followed| replace(followed, record.map(ObservedTerm::of)) != *followed);
    }

    /// Tells the peers that a write of the term is committed, and that the term continues.
    pub(super) fn committed(&self, leadership: &Leadership, election: &Election) {
        let Some(open) = self.0.get() else { return };
        if let Some(written) = election.share_observed() {
            open.led.committed(leadership, written);
        }
    }

    /// Tells the peers that the run is over. A lease that was not released by now will not be released.
    pub(super) fn on_run_end(&self) {
        let Some(open) = self.0.get() else { return };
        open.saved.on_run_end();
        open.followed.send_if_modified(|followed| followed.take().is_some());
        // A released term stays: the report of the release lets a follower read at once (rule 17), and may not have been sent yet.
        open.led.0.send_if_modified(|led| led.take_if(|led| led.released.is_none()).is_some());
    }
}
