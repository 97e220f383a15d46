//! A lease under our own name: whose is it?

use std::time::Duration;

use chrono::DateTime;
use leaderelection::clock::LocalInstant;
use leaderelection::election::{Answer, Election, EndReason, Event, Failure, Jitter, Request, Rules, Stamp};
use leaderelection::{LeaderElectionRecord, StoreErrorKind, Version, VersionedRecord};

use crate::support::{DEADLINE, LEASE, RETRY, record};

/// An election, and the object that it is about.
struct Play {
    election: Election,
    now: LocalInstant,
    object: Option<VersionedRecord>,
    writes: usize,
    clashes: usize,
}

impl Play {
    fn new(object: Option<LeaderElectionRecord>) -> Self {
        let rules = Rules {
            identity: "a".to_owned(),
            lease_duration: LEASE,
            renew_deadline: DEADLINE,
            retry_period: RETRY,
            reclaim_own_identity: false,
        };
        let now = LocalInstant::default();
        let mut play = Self { election: Election::new(rules), now, object: None, writes: 0, clashes: 0 };
        if let Some(record) = object {
            play.write(record);
        }
        play.election.begin(now);
        play
    }

    fn write(&mut self, record: LeaderElectionRecord) -> Version {
        self.writes += 1;
        let version = Version::new(self.writes.to_string());
        self.object = Some(VersionedRecord::new(record, version.clone()));
        version
    }

    fn object(&self) -> LeaderElectionRecord {
        self.object.clone().expect("an object").record
    }

    /// The next request, when it is due.
    fn request(&mut self) -> Request {
        self.now = self.now.max(self.election.next_wake().expect("something is due"));
        let (now, id) = (self.now, self.writes);
        let stamp = || Stamp { write_id: format!("a-{id}-{}", now.as_nanos()), time: DateTime::UNIX_EPOCH };
        self.election.poll(now, stamp).expect("a request is due")
    }

    fn answer(&mut self, answer: Answer) {
        self.election.on_answer(self.now, answer, Jitter::default());
        let events = std::iter::from_fn(|| self.election.next_event());
        self.clashes += events.filter(|event| *event == Event::IdentityClash).count();
    }

    /// Lets a request happen, and answers it.
    fn serve(&mut self, request: Request) {
        let answer = match request {
            Request::Read => Answer::Read(Ok(self.object.clone())),
            Request::Update { expected, .. }
                if self.object.as_ref().is_none_or(|object| object.version != expected) =>
            {
                Answer::Written(Err(Failure { kind: StoreErrorKind::Conflict, retry_after: None }))
            }
            Request::Create { record } | Request::Update { record, .. } => Answer::Written(Ok(self.write(record))),
        };
        self.answer(answer);
    }

    /// Lets a write happen, or not, and says nothing of it.
    fn leave_unanswered(&mut self, request: Request, lands: bool) {
        let (Request::Create { record } | Request::Update { record, .. }) = request else { panic!("{request:?}") };
        if lands {
            self.write(record);
        }
        let failure = Failure { kind: StoreErrorKind::Ambiguous, retry_after: None };
        self.answer(Answer::Written(Err(failure)));
    }

    fn until_leading(&mut self) {
        while self.election.leading(self.now).is_none() {
            let request = self.request();
            self.serve(request);
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    /// Goes on until the object was read again.
    fn reads(&mut self) {
        loop {
            let request = self.request();
            let is_read = request == Request::Read;
            self.serve(request);
            if is_read {
                return;
            }
        }
    }

    /// Somebody else, who has our name, renews.
    fn twin_renews(&mut self) {
        let mut renewed = self.object();
        renewed.write_id = Some(format!("twin-{}", self.writes));
        self.write(renewed);
    }
}

#[test]
fn a_lease_that_lives_without_us_is_reported_once() {
    let mut play = Play::new(Some(record("a", LEASE, 7)));
    play.reads();
    assert_eq!(play.clashes, 0, "we may have left it behind before we were restarted");
    for _ in 0..3 {
        play.twin_renews();
        play.reads();
    }
    assert_eq!(play.clashes, 1);
}

#[test]
fn a_twin_that_takes_our_lease_is_reported() {
    let mut play = Play::new(None);
    play.until_leading();
    play.twin_renews();
    play.reads();
    assert_eq!(play.clashes, 1);
}

#[test]
fn our_own_renewal_that_lands_after_its_term_is_not_reported() {
    for is_lost in [false, true] {
        let mut play = Play::new(None);
        play.until_leading();
        let renewal = play.request();
        if is_lost {
            // With the elector's future, which was dropped before there was an answer.
            let Request::Update { record, .. } = renewal else { panic!("{renewal:?}") };
            play.write(record);
        } else {
            play.leave_unanswered(renewal, true);
        }
        play.pass(DEADLINE);
        play.election.stop(play.now, EndReason::Cancelled);
        play.election.work_stopped(play.now, false);
        play.election.begin(play.now);
        play.reads();
        assert_eq!(play.clashes, 0, "is_lost: {is_lost}");
        // A twin is reported all the same.
        play.twin_renews();
        play.reads();
        assert_eq!(play.clashes, 1, "is_lost: {is_lost}");
    }
}

#[test]
fn a_request_to_hand_over_what_we_left_behind_is_not_reported() {
    let mut play = Play::new(Some(record("a", LEASE, 7)));
    play.reads();
    let mut annotated = play.object();
    annotated.preferred_holder = Some("b".to_owned());
    play.write(annotated);
    play.reads();
    assert_eq!(play.clashes, 0);
}

#[test]
fn what_we_left_behind_is_not_reported_when_a_takeover_of_it_failed() {
    let mut play = Play::new(Some(record("a", LEASE, 7)));
    play.reads();
    play.pass(LEASE);
    let takeover = play.request();
    play.leave_unanswered(takeover, false);
    play.election.stop(play.now, EndReason::Cancelled);
    play.election.work_stopped(play.now, true);
    play.reads();
    assert_eq!(play.clashes, 0);
}
