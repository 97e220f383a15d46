//! Rules 15 to 17: a follower that gets messages from the leader, truly or not.

mod lies;
mod pace;

use std::time::Duration;

use leaderelection::StoreErrorKind;
use leaderelection::clock::LocalInstant;
use leaderelection::election::{
    Answer, Effect, ElectionConfig, Fact, Failure, IgnoredReason, Input, PeerMessage, Purpose, Request, Write,
};
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::lock::PeerAddress;
use leaderelection_test_support::play::Play;

use super::steps::{SECOND, unhurried};
use crate::support::record;

const TOKEN: u64 = 7;
const MILLI: Duration = Duration::from_millis(1);
const INTERVAL: Duration = ElectionConfig::BACKGROUND_INTERVAL;

/// The leader `b`, the store with its last write, and a follower whose reads are answered at once.
struct Scene {
    play: Play,
    /// The number of the write that the store shows; `None` if the object was deleted.
    shown: Option<u64>,
    preferred: Option<&'static str>,
    /// The retry period that the leader has written.
    retry: Option<Duration>,
    reads: Vec<LocalInstant>,
    /// The moment at which the follower has sent a write that begins a term.
    acquires: Option<LocalInstant>,
    /// `true` if the store answers no read.
    is_silent: bool,
    /// The messages of a peer while a read is in flight.
    chatter: Option<fn(u64) -> Option<PeerMessage>>,
    turn: u64,
}

impl Scene {
    fn new(jitter: u32) -> Self {
        let mut scene = Self {
            play: Play::new(unhurried(), jitter),
            shown: Some(1),
            preferred: None,
            retry: None,
            reads: Vec::new(),
            acquires: None,
            is_silent: false,
            chatter: None,
            turn: 0,
        };
        scene.answer();
        scene
    }

    /// A follower that got a message about the second write, and whose read has confirmed it. The next read is far
    /// away.
    fn confirmed() -> Self {
        let mut scene = Self::new(0);
        scene.pass(SECOND);
        scene.renew();
        assert_eq!(scene.message(2), Fact::WriteReported);
        scene.pass(SECOND * 2);
        assert_eq!(scene.reads.len(), 2, "the second read confirms the message");
        scene.reads.clear();
        scene
    }

    fn at(&self) -> Duration {
        self.play.now.saturating_since(LocalInstant::default())
    }

    fn answer(&mut self) {
        while self.play.request() == Some(Request::Read) {
            self.reads.push(self.play.now);
            if let Some(chatter) = self.chatter {
                self.chat(chatter);
            }
            self.play.handle(Input::Answer(if self.is_silent {
                let failure = Failure { kind: StoreErrorKind::Ambiguous, retry_after: None };
                Answer::Read(Err(failure))
            } else {
                Answer::Read(Ok(self.shown.map(|number| self.object(number))))
            }));
        }
        if self.play.purpose() == Some(Purpose::Acquire) {
            self.acquires.get_or_insert(self.play.now);
        }
    }

    fn object(&self, number: u64) -> VersionedRecord {
        let mut record = record("b", SECOND * 15, TOKEN);
        record.write_id = Some(id(number));
        record.preferred_holder = self.preferred.map(str::to_owned);
        let mut address = PeerAddress::new("https://b", TOKEN);
        address.retry_period = self.retry;
        record.peer = Some(address.into());
        VersionedRecord::new(record, Version::new(format!("{number}{}", self.preferred.unwrap_or_default())))
    }

    fn input(&mut self, input: Input) {
        self.play.handle(input);
        let effects = self.play.effects.clone();
        self.answer();
        self.play.effects = effects;
    }

    /// Lets time pass, and the follower act as soon as it wants to.
    fn pass(&mut self, time: Duration) {
        let end = self.play.now + time;
        while let Some(wake_at) = self.play.election.wake_at().filter(|wake_at| *wake_at <= end)
            && self.acquires.is_none()
        {
            self.play.now = self.play.now.max(wake_at);
            self.input(Input::Tick);
        }
        if self.acquires.is_none() {
            self.play.now = self.play.now.max(end);
        }
    }

    fn renew(&mut self) {
        self.shown = self.shown.map(|number| number + 1);
    }

    fn say(&mut self, message: PeerMessage) -> Fact {
        self.input(Input::Message(message));
        let is_answer = |fact: &Fact| matches!(fact, Fact::WriteReported | Fact::EndReported | Fact::MessageIgnored(_));
        let mut facts = self.play.effects.iter().filter_map(|effect| match effect {
            Effect::Fact(fact) => Some(fact.clone()),
            _ => None,
        });
        facts.find(is_answer).expect("every message is counted")
    }

    fn message(&mut self, number: u64) -> Fact {
        self.say(committed(&id(number), number))
    }

    /// Takes the next message of a peer that says anything.
    fn chat(&mut self, message: fn(u64) -> Option<PeerMessage>) {
        self.turn += 1;
        if let Some(message) = message(self.turn) {
            self.play.handle(Input::Message(message));
        }
    }

    fn on_silence(&mut self) {
        self.input(Input::Message(PeerMessage::Nothing));
    }

    /// Waits for the write that begins the follower's term.
    fn takeover(&mut self) -> Duration {
        self.pass(SECOND * 3600);
        self.acquires.expect("a follower of a dead leader leads").saturating_since(LocalInstant::default())
    }
}

fn id(number: u64) -> String {
    format!("b-{number}")
}

fn committed(write_id: &str, number: u64) -> PeerMessage {
    PeerMessage::Committed {
        holder: "b".to_owned(),
        fencing_token: TOKEN.into(),
        write_id: write_id.to_owned(),
        number,
    }
}

fn ended() -> PeerMessage {
    PeerMessage::Ended { holder: "b".to_owned(), fencing_token: TOKEN.into() }
}

const fn ignored(reason: IgnoredReason) -> Fact {
    Fact::MessageIgnored(reason)
}

#[test]
fn a_follower_with_messages_makes_at_most_130_requests_an_hour() {
    for jitter in [0, 1 << 31, u32::MAX] {
        let mut scene = Scene::new(jitter);
        for _ in 0..1800 {
            scene.renew();
            scene.pass(MILLI * 20);
            scene.message(scene.shown.unwrap());
            scene.pass(SECOND * 2 - MILLI * 20);
        }
        assert!(scene.acquires.is_none());
        assert!((100..=130).contains(&scene.reads.len()), "{} reads an hour", scene.reads.len());
    }
}

#[test]
fn a_dead_leader_is_replaced_one_lease_after_its_last_message() {
    let mut scene = Scene::confirmed();
    for _ in 0..8 {
        scene.renew();
        assert_eq!(scene.message(scene.shown.unwrap()), Fact::WriteReported);
        scene.pass(SECOND * 2);
    }
    let last_message = scene.at() - SECOND * 2;
    assert_eq!(scene.takeover(), last_message + SECOND * 15);
}

#[test]
fn a_silent_leader_is_looked_for_after_two_retry_periods() {
    let mut scene = Scene::confirmed();
    scene.renew();
    scene.message(3);
    scene.pass(SECOND * 4 - MILLI);
    assert_eq!(scene.reads.len(), 0);
    scene.pass(MILLI);
    assert_eq!(scene.reads.len(), 1);
    scene.pass(SECOND * 2);
    assert_eq!(scene.reads.len(), 2, "polls again while no message comes");
}

#[test]
fn a_repeated_message_restarts_no_timer() {
    let mut scene = Scene::confirmed();
    let reported_at = SECOND;
    while scene.acquires.is_none() {
        // A leader that cannot write says the same again and again, and may even count on.
        assert_eq!(scene.message(2), ignored(IgnoredReason::NotNewer));
        assert_eq!(scene.say(committed(&id(2), 1000)), ignored(IgnoredReason::NotNewer));
        scene.pass(SECOND);
    }
    assert_eq!(scene.acquires, Some(LocalInstant::default() + reported_at + SECOND * 15));
}

#[test]
fn an_older_write_does_not_count() {
    let mut scene = Scene::confirmed();
    scene.renew();
    scene.renew();
    assert_eq!(scene.message(4), Fact::WriteReported);
    let before = scene.play.election.clone();
    assert_eq!(scene.message(3), ignored(IgnoredReason::NotNewer));
    assert_eq!(scene.play.election, before);
    // The number of a write that the store has shown counts, too.
    let mut scene = Scene::new(0);
    assert_eq!(scene.say(committed(&id(1), 10)), ignored(IgnoredReason::NotNewer));
    assert_eq!(scene.say(committed("b-0", 9)), ignored(IgnoredReason::NotNewer));
}

#[test]
fn the_words_of_another_term_do_not_count() {
    let mut scene = Scene::confirmed();
    let before = scene.play.election.clone();
    for (holder, fencing_token) in [("b", TOKEN + 1), ("b", TOKEN - 1), ("c", TOKEN), ("", TOKEN)] {
        let holder = holder.to_owned();
        let write = PeerMessage::Committed {
            holder: holder.clone(),
            fencing_token: fencing_token.into(),
            write_id: id(9),
            number: 9,
        };
        assert_eq!(scene.say(write), ignored(IgnoredReason::OtherTerm));
        assert_eq!(
            scene.say(PeerMessage::Ended { holder, fencing_token: fencing_token.into() }),
            ignored(IgnoredReason::OtherTerm)
        );
    }
    assert_eq!(scene.play.election, before);
}

#[test]
fn a_word_dates_only_the_write_that_it_names() {
    let mut scene = Scene::confirmed();
    scene.renew();
    scene.message(3);
    scene.pass(SECOND * 3);
    // The next read shows a write that no message reported.
    scene.renew();
    scene.pass(SECOND);
    let read_at = scene.at();
    assert_eq!(scene.reads.last(), Some(&scene.play.now));
    assert_eq!(scene.takeover(), read_at + SECOND * 15);
}

#[test]
fn an_end_is_looked_for_at_once_and_the_store_decides() {
    // The leader has released its lease: one read, and one write.
    let mut scene = Scene::confirmed();
    scene.play.handle(Input::Message(ended()));
    assert_eq!(scene.play.request(), Some(Request::Read));
    let released = VersionedRecord::new(record("", SECOND, TOKEN), Version::new("released"));
    scene.play.handle(Input::Answer(Answer::Read(Ok(Some(released)))));
    let Some(Request::Write(Write { expected, .. })) = scene.play.request() else { panic!("no write") };
    assert_eq!(expected, Some(Version::new("released")));
    // The leader goes on.
    let mut scene = Scene::confirmed();
    assert_eq!(scene.say(ended()), Fact::EndReported);
    assert_eq!(scene.reads.len(), 1);
    assert_eq!(scene.acquires, None);
    assert_eq!(scene.say(ended()), ignored(IgnoredReason::Closed), "one lie costs one read");
    assert_eq!(scene.message(3), ignored(IgnoredReason::Closed));
    assert_eq!(scene.reads.len(), 1);
    // The lie does not date the lease that the read shows, and ends no lease.
    assert_eq!(scene.takeover(), SECOND + SECOND * 15);
}

#[test]
fn a_follower_whose_peer_refuses_reads_at_once_and_then_polls() {
    let mut scene = Scene::confirmed();
    scene.renew();
    scene.message(3);
    scene.on_silence();
    assert_eq!(scene.reads.len(), 1);
    for _ in 0..100 {
        scene.on_silence();
    }
    // The first read has confirmed a message. No other read can.
    assert_eq!(scene.reads.len(), 2, "refusals cost no further reads");
    scene.pass(SECOND * 2);
    assert_eq!(scene.reads.len(), 3);
}

/// A leader that dies before a follower got a message about a renewal is like one without peers. The wait begins with the
/// first read of the last write, and another read of the same write would not end the wait earlier.
#[test]
fn a_read_at_the_silence_of_a_new_leader_would_bring_no_takeover_forward() {
    let mut scene = Scene::new(0);
    let first_read = scene.at();
    assert_eq!(scene.message(1), ignored(IgnoredReason::NotNewer), "the stream begins with what the read has shown");
    scene.pass(SECOND);
    scene.on_silence();
    assert_eq!(scene.reads.len(), 1);
    assert_eq!(scene.takeover(), first_read + SECOND * 15, "acts at the expiry itself, and not at the next read");
    // The same with a read at the moment of the silence.
    let mut scene = Scene::new(0);
    scene.pass(SECOND);
    scene.say(ended());
    assert_eq!(scene.reads.len(), 2);
    assert_eq!(scene.takeover(), first_read + SECOND * 15);
}

#[test]
fn a_reported_lease_is_waited_for_when_the_object_has_vanished() {
    let mut scene = Scene::confirmed();
    for _ in 0..12 {
        scene.renew();
        scene.message(scene.shown.unwrap());
        scene.pass(SECOND * 2);
    }
    let last_message = scene.at() - SECOND * 2;
    assert_eq!(scene.message(2), ignored(IgnoredReason::NotNewer), "a late message about the write that was read");
    scene.shown = None;
    scene.on_silence();
    assert_eq!(
        scene.acquires, None,
        "the lease that the store showed last is over, and the leader may have renewed it"
    );
    assert_eq!(scene.takeover(), last_message + SECOND * 15 + MILLI * 100);
}

#[test]
fn a_store_that_answers_no_read_does_not_keep_the_lease_for_a_dead_leader() {
    let mut scene = Scene::confirmed();
    scene.message(3);
    scene.is_silent = true;
    let reported_at = scene.at();
    assert_eq!(scene.takeover(), reported_at + SECOND * 15 + MILLI * 100);
}

#[test]
fn a_late_transfer_request_begins_the_preferred_grace_when_it_is_read() {
    let mut scene = Scene::confirmed();
    scene.renew();
    scene.message(3);
    scene.is_silent = true;
    scene.takeover();
    (scene.is_silent, scene.preferred, scene.acquires) = (false, Some("c"), None);
    let conflict = Failure { kind: StoreErrorKind::Conflict, retry_after: None };
    scene.input(Input::Answer(Answer::Written(Err(conflict))));
    assert_eq!(scene.reads.last(), Some(&scene.play.now));
    let seen_at = scene.at();
    assert_eq!(scene.takeover(), seen_at + SECOND * 15);
}

/// Most candidates get no messages, and pay one pointer for it.
#[test]
fn a_candidate_without_messages_stays_small() {
    let size = size_of::<leaderelection::election::Election>();
    assert!(size <= 680, "{size} bytes");
}
