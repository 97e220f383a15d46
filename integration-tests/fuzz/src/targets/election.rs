//! The state machine of an election under arbitrary inputs.

use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use leaderelection::election::{
    Answer, Command, Effect, ElectionConfig, Fact, Failure, Input, PeerMessage, Request, WorkEnd, Write,
};
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::{LeaderElectionRecord, StoreErrorKind};
use leaderelection_test_support::play::Play;

use super::peer_feed::below;

const DEADLINE: Duration = Duration::from_nanos(4);
const NAMES: [&str; 3] = ["", "a", "b"];

/// An event from a driver, a store or the environment. The order of events may be one that no driver produces.
#[derive(Arbitrary, Debug)]
enum Deed {
    Pass(#[arbitrary(with = below::<4>)] u64),
    PassLong(#[arbitrary(with = time)] u64),
    Tick,
    Show(Shown),
    ShowNothing,
    FailRead(#[arbitrary(with = failure)] Failure),
    Write(#[arbitrary(with = below::<4>)] u64),
    FailWrite(#[arbitrary(with = failure)] Failure),
    Begin(#[arbitrary(with = time)] u64, bool),
    Command(#[arbitrary(with = command)] Command),
    WorkEnded(#[arbitrary(with = work_end)] WorkEnd),
    Expired,
    Message(#[arbitrary(with = message)] PeerMessage),
}

/// A state that a read shows.
#[derive(Arbitrary, Debug)]
struct Shown {
    #[arbitrary(with = name)]
    holder: &'static str,
    #[arbitrary(with = |input: &mut Unstructured<'_>| input.int_in_range(1..=19))]
    lease: u64,
    #[arbitrary(with = |input: &mut Unstructured<'_>| input.choose(&[0, 1, 2, 3, (1 << 53) - 1]).copied())]
    token: u64,
    #[arbitrary(with = below::<4>)]
    version: u64,
    ours: bool,
    #[arbitrary(with = name)]
    preferred: &'static str,
    #[arbitrary(with = some_time)]
    age: Option<u64>,
}

type Result<T> = arbitrary::Result<T>;

fn name(input: &mut Unstructured<'_>) -> Result<&'static str> {
    input.choose(&NAMES).copied()
}

/// From the corners as well as from anywhere.
fn time(input: &mut Unstructured<'_>) -> Result<u64> {
    match input.int_in_range(0..=6)? {
        5 => Ok(u64::MAX),
        6 => input.arbitrary(),
        small => Ok(small),
    }
}

fn some_time(input: &mut Unstructured<'_>) -> Result<Option<u64>> {
    if input.arbitrary()? { time(input).map(Some) } else { Ok(None) }
}

fn failure(input: &mut Unstructured<'_>) -> Result<Failure> {
    use StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected, Unreadable};
    let kind = *input.choose(&[Conflict, Rejected, Ambiguous, Fatal, Unreadable])?;
    Ok(Failure { kind, retry_after: some_time(input)?.map(Duration::from_nanos) })
}

fn command(input: &mut Unstructured<'_>) -> Result<Command> {
    input.choose(&[Command::Stop, Command::StepDown, Command::TransferTo("b".to_owned())]).cloned()
}

fn work_end(input: &mut Unstructured<'_>) -> Result<WorkEnd> {
    use WorkEnd::{Complete, Dropped, Failed, NotBegun, Panicked};
    input.choose(&[Complete, Dropped, Failed, NotBegun, Panicked]).cloned()
}

fn message(input: &mut Unstructured<'_>) -> Result<PeerMessage> {
    let (holder, fencing_token) = (name(input)?.to_owned(), below::<4>(input)?);
    Ok(match input.int_in_range(0..=4)? {
        0 => PeerMessage::Nothing,
        1 => PeerMessage::Ended { holder, fencing_token: fencing_token.into() },
        _ => {
            let write_id = (*input.choose(&["b-0", "b-1", "a-1", "none"])?).to_owned();
            PeerMessage::Committed { holder, fencing_token: fencing_token.into(), write_id, number: time(input)? }
        }
    })
}

/// Nothing panics, and only a write that is known to be committed begins a term or moves its deadline.
pub(super) fn election(input: &[u8]) {
    let mut input = Unstructured::new(input);
    let mut rules = ElectionConfig::new(NAMES[1], Duration::from_nanos(6), DEADLINE, Duration::from_nanos(2));
    let Ok((reclaim, release, jitter)) = input.arbitrary() else { return };
    (rules.reclaim_own_identity, rules.release_on_cancel) = (reclaim, release);
    let slack: Result<Option<u64>> = input.arbitrary();
    rules.store_clock_slack = slack.unwrap_or_default().map(|slack| Duration::from_nanos(slack % 4));
    let mut play = Play::new(rules, jitter);
    let mut world = World { last_write: None, in_flight: play.request(), was_too_soon: false };
    while !input.is_empty()
        && let Ok(deed) = input.arbitrary()
    {
        world.step(&mut play, deed);
    }
}

/// The write id of the last write, and the request without an answer.
struct World {
    last_write: Option<String>,
    in_flight: Option<Request>,
    /// The term was over before its work was polled, and no request was sent since.
    was_too_soon: bool,
}

impl World {
    fn step(&mut self, play: &mut Play, deed: Deed) {
        let before = play.election.leading(play.now);
        // An answer to a request that is not in flight is ignored.
        let is_read = self.in_flight.as_ref().map(|request| *request == Request::Read);
        let committed = match &deed {
            Deed::Show(shown) => is_read == Some(true) && shown.ours && self.last_write.is_some(),
            Deed::Write(_) => is_read == Some(false),
            _ => false,
        };
        let Some(step) = self.input(play, deed) else { return };
        match &step {
            Input::Answer(Answer::Read(_)) => drop(self.in_flight.take_if(|request| *request == Request::Read)),
            Input::Answer(Answer::Written(_)) => drop(self.in_flight.take_if(|request| *request != Request::Read)),
            Input::Begin { .. } => self.in_flight = None,
            _ => {}
        }
        // A term whose work was never polled was over too soon.
        self.was_too_soon |= matches!(step, Input::WorkEnded(WorkEnd::NotBegun));
        play.handle(step);
        let after = play.election.leading(play.now);
        if !committed && let Some(after) = &after {
            assert_eq!(before.map(|term| term.valid_until), Some(after.valid_until));
        }
        if let Some(term) = after {
            assert!(play.now < term.valid_until && term.sent_at <= play.now);
            assert_eq!(term.valid_until, term.sent_at + DEADLINE);
        }
        self.check_effects(play);
        assert!(play.election.is_idle() || play.election.wake_at().is_some() || self.in_flight.is_some());
    }

    /// The input of a deed; `None` if only time passes.
    fn input(&self, play: &mut Play, deed: Deed) -> Option<Input> {
        Some(match deed {
            Deed::Pass(nanos) | Deed::PassLong(nanos) => {
                play.now = play.now + Duration::from_nanos(nanos);
                return None;
            }
            Deed::Tick => Input::Tick,
            Deed::Show(shown) => Input::Answer(Answer::Read(Ok(Some(self.record(&shown))))),
            Deed::ShowNothing => Input::Answer(Answer::Read(Ok(None))),
            Deed::FailRead(failure) => Input::Answer(Answer::Read(Err(failure))),
            Deed::Write(version) => Input::Answer(Answer::Written(Ok(Version::new(version.to_string())))),
            Deed::FailWrite(failure) => Input::Answer(Answer::Written(Err(failure))),
            Deed::Begin(back, ends_with_work) => {
                Input::Begin { stand_back: Duration::from_nanos(back), ends_with_work, job: None }
            }
            Deed::Command(command) => Input::Command(command),
            Deed::WorkEnded(end) => Input::WorkEnded(end),
            Deed::Expired => Input::Expired,
            Deed::Message(message) => Input::Message(message),
        })
    }

    fn record(&self, shown: &Shown) -> VersionedRecord {
        let mut record = LeaderElectionRecord::new(shown.holder, Duration::from_nanos(shown.lease));
        record.leader_transitions = shown.token;
        record.write_id = Some(format!("{}-{}", shown.holder, shown.token));
        record.preferred_holder = Some(shown.preferred.to_owned()).filter(|preferred| !preferred.is_empty());
        if shown.ours {
            record.write_id.clone_from(&self.last_write);
        }
        let version = Version::new(shown.version.to_string());
        VersionedRecord::new(record, version).with_age(shown.age.map(Duration::from_nanos))
    }

    fn check_effects(&mut self, play: &Play) {
        let effects = &play.effects;
        assert!(effects.len() <= 12, "{} effects of one step", effects.len());
        let stop = effects.iter().position(|effect| matches!(effect, Effect::Stop { .. }));
        let abandons = self.was_too_soon || stop.is_some() || effects.contains(&Effect::Fact(Fact::ReleaseGivenUp));
        for (index, effect) in effects.iter().enumerate() {
            match effect {
                Effect::Send(request) => {
                    // A request of a term that was over too soon is abandoned when the candidate competes again.
                    assert!((self.in_flight.is_none() || abandons) && !play.election.is_idle());
                    if let Request::Write(Write { record, .. }) = request {
                        self.last_write = Some(play.draw.ids.to_string());
                        assert_eq!(record.write_id, self.last_write);
                        assert!(record.is_released() || record.holder_identity == NAMES[1]);
                    }
                    (self.in_flight, self.was_too_soon) = (Some(request.clone()), false);
                }
                Effect::Fact(Fact::LeaderChanged { leader }) => {
                    assert_ne!(leader.as_deref(), Some(""));
                    assert!(leader.as_deref() == Some(NAMES[1]) || stop.is_none_or(|stop| stop < index));
                }
                Effect::Finished(_) => {
                    self.in_flight = None;
                    assert!(play.election.is_idle());
                }
                _ => {}
            }
        }
    }
}
