//! The state machine: under arbitrary inputs here, step by step in `steps.rs`.

mod hearing;
mod steps;

use std::time::Duration;

use chrono::DateTime;
use leaderelection::clock::LocalInstant;
use leaderelection::election::{
    Answer, Command, Draw, Effect, Election, Fact, Failure, Heard, Input, Jitter, Request, Rules, Stamp, WorkEnd, Write,
};
use leaderelection::{StoreErrorKind, Version, VersionedRecord};
use proptest::prelude::*;

use crate::support::record;

/// An event from a driver, a store or the environment. The order of events may be one that no driver produces.
#[derive(Clone, Debug)]
enum Deed {
    Pass(u64),
    Tick,
    Show { holder: usize, lease: u64, token: u64, version: u8, ours: bool, preferred: usize, age: Option<u64> },
    ShowNothing,
    FailRead(StoreErrorKind, Option<u64>),
    Write(u8),
    FailWrite(StoreErrorKind, Option<u64>),
    Begin(u64, bool),
    Command(Command),
    WorkEnded(WorkEnd),
    Expired,
    Hear { holder: usize, token: u64, write: usize, number: u64 },
    HearEnd { holder: usize, token: u64 },
    HearNothing,
}

fn deeds() -> impl Strategy<Value = Deed> {
    use StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected, Unreadable};
    use WorkEnd::{Complete, Dropped, NotBegun, Panicked};
    let kind = || prop::sample::select(vec![Conflict, Rejected, Ambiguous, Fatal, Unreadable]);
    // From the corners as well as from anywhere.
    let time = || prop_oneof![0u64..5, Just(u64::MAX), any::<u64>()];
    let command = || prop::sample::select(vec![Command::Stop, Command::StepDown, Command::TransferTo("b".to_owned())]);
    prop_oneof![
        3 => (0u64..4).prop_map(Deed::Pass),
        1 => time().prop_map(Deed::Pass),
        6 => Just(Deed::Tick),
        3 => (
            0usize..3,
            1u64..20,
            prop_oneof![0u64..4, Just((1 << 53) - 1)],
            0u8..4,
            any::<bool>(),
            0usize..3,
            prop::option::of(time()),
        )
            .prop_map(|(holder, lease, token, version, ours, preferred, age)| {
                Deed::Show { holder, lease, token, version, ours, preferred, age }
            }),
        1 => Just(Deed::ShowNothing),
        1 => (kind(), prop::option::of(time())).prop_map(|(kind, after)| Deed::FailRead(kind, after)),
        4 => (0u8..4).prop_map(Deed::Write),
        2 => (kind(), prop::option::of(time())).prop_map(|(kind, after)| Deed::FailWrite(kind, after)),
        1 => (time(), any::<bool>()).prop_map(|(back, ends)| Deed::Begin(back, ends)),
        1 => command().prop_map(Deed::Command),
        1 => prop::sample::select(vec![Complete, Dropped, NotBegun, Panicked]).prop_map(Deed::WorkEnded),
        1 => Just(Deed::Expired),
        3 => (0usize..3, 0u64..4, 0usize..4, time())
            .prop_map(|(holder, token, write, number)| Deed::Hear { holder, token, write, number }),
        1 => (0usize..3, 0u64..4).prop_map(|(holder, token)| Deed::HearEnd { holder, token }),
        1 => Just(Deed::HearNothing),
    ]
}

fn rules() -> Rules {
    let nanos = Duration::from_nanos;
    Rules::new("a", nanos(6), nanos(4), nanos(2))
}

/// Counts the stamps, and always draws the same fraction.
struct Count {
    ids: u64,
    jitter: u32,
}

impl Draw for Count {
    fn jitter(&mut self) -> Jitter {
        Jitter::new(self.jitter)
    }

    fn stamp(&mut self) -> Stamp {
        self.ids += 1;
        Stamp { write_id: self.ids.to_string(), time: DateTime::UNIX_EPOCH }
    }
}

proptest! {
    #[test]
    fn arbitrary_inputs_neither_panic_nor_prolong_leadership(
        deeds in prop::collection::vec(deeds(), 1..80),
        reclaim in any::<bool>(),
        release in any::<bool>(),
        jitter in any::<u32>(),
        slack in prop::option::of(0u64..4),
    ) {
        let mut rules = rules();
        (rules.reclaim_own_identity, rules.release_on_cancel) = (reclaim, release);
        rules.store_clock_slack = slack.map(Duration::from_nanos);
        let mut election = Election::new(rules);
        let mut draw = Count { ids: 0, jitter };
        let mut now = LocalInstant::default();
        let mut last_write = None;
        let mut in_flight: Option<Request> = None;
        election.handle(now, Input::Begin { stand_back: Duration::ZERO, ends_with_work: false, job: None }, &mut draw);
        in_flight = next_request(&mut election).or(in_flight);
        for deed in deeds {
            let before = election.leading(now);
            let is_read = in_flight.as_ref().map(|request| *request == Request::Look);
            let mut landed = false;
            let failure = |kind, after: Option<u64>| Failure { kind, retry_after: after.map(Duration::from_nanos) };
            let input = match deed {
                Deed::Pass(nanos) => {
                    now = now + Duration::from_nanos(nanos);
                    continue;
                }
                Deed::Tick => Input::Tick,
                Deed::Show { holder, lease, token, version, ours, preferred, age } => {
                    let mut shown = record(["", "a", "b"][holder], Duration::from_nanos(lease), token);
                    shown.preferred_holder = [None, Some("a"), Some("b")][preferred].map(str::to_owned);
                    if ours {
                        shown.write_id = last_write.clone();
                    }
                    // An answer to a request that is not in flight is ignored.
                    landed = is_read == Some(true) && ours && last_write.is_some();
                    let version = Version::new(version.to_string());
                    let age = age.map(Duration::from_nanos);
                    Input::Answer(Answer::Read(Ok(Some(VersionedRecord::new(shown, version).with_age(age)))))
                }
                Deed::ShowNothing => Input::Answer(Answer::Read(Ok(None))),
                Deed::FailRead(kind, after) => Input::Answer(Answer::Read(Err(failure(kind, after)))),
                Deed::Write(version) => {
                    landed = is_read == Some(false);
                    Input::Answer(Answer::Written(Ok(Version::new(version.to_string()))))
                }
                Deed::FailWrite(kind, after) => Input::Answer(Answer::Written(Err(failure(kind, after)))),
                Deed::Begin(back, ends_with_work) => {
                    in_flight = None;
                    Input::Begin { stand_back: Duration::from_nanos(back), ends_with_work, job: None }
                }
                Deed::Command(command) => Input::Command(command),
                Deed::WorkEnded(end) => Input::WorkEnded(end),
                Deed::Expired => Input::Expired,
                Deed::Hear { holder, token, write, number } => Input::Heard(Heard::Landed {
                    holder: ["", "a", "b"][holder].to_owned(),
                    fencing_token: token,
                    write_id: ["b-0", "b-1", "a-1", "none"][write].to_owned(),
                    number,
                }),
                Deed::HearEnd { holder, token } => {
                    Input::Heard(Heard::Ended { holder: ["", "a", "b"][holder].to_owned(), fencing_token: token })
                }
                Deed::HearNothing => Input::Heard(Heard::Nothing),
            };
            match &input {
                Input::Answer(Answer::Read(_)) => drop(in_flight.take_if(|request| *request == Request::Look)),
                Input::Answer(Answer::Written(_)) => drop(in_flight.take_if(|request| *request != Request::Look)),
                _ => {}
            }
            election.handle(now, input, &mut draw);
            let after = election.leading(now);
            // Only a write that is known to have landed begins a term or moves its deadline.
            if !landed && let Some(after) = after {
                prop_assert_eq!(before.map(|term| term.valid_until), Some(after.valid_until));
            }
            if let Some(term) = after {
                prop_assert!(now < term.valid_until && term.sent_at <= now);
                prop_assert_eq!(term.valid_until, term.sent_at + Duration::from_nanos(4));
            }
            let effects: Vec<_> = effects(&mut election).collect();
            prop_assert!(effects.len() <= 12, "{} effects of one step", effects.len());
            let stop = effects.iter().position(|effect| matches!(effect, Effect::Stop { .. }));
            let abandons = stop.is_some() || effects.contains(&Effect::Fact(Fact::ReleaseGivenUp));
            for (index, effect) in effects.into_iter().enumerate() {
                match effect {
                    Effect::Send(request) => {
                        // A request of a term that was over too soon is abandoned when the candidate competes again.
                        prop_assert!((in_flight.is_none() || abandons) && !election.is_idle());
                        if let Request::Write(Write { record, .. }) = &request {
                            last_write = Some(draw.ids.to_string());
                            prop_assert_eq!(&record.write_id, &last_write);
                            prop_assert!(record.is_released() || record.holder_identity == "a");
                        }
                        in_flight = Some(request);
                    }
                    Effect::Fact(Fact::LeaderChanged { leader }) => {
                        prop_assert_ne!(leader.as_deref(), Some(""));
                        prop_assert!(leader.as_deref() == Some("a") || stop.is_none_or(|stop| stop < index));
                    }
                    Effect::Finished(_) => {
                        in_flight = None;
                        prop_assert!(election.is_idle());
                    }
                    _ => {}
                }
            }
            prop_assert!(election.is_idle() || election.wake_at().is_some() || in_flight.is_some());
        }
    }
}

fn effects(election: &mut Election) -> impl Iterator<Item = Effect> {
    std::iter::from_fn(|| election.next())
}

/// The request among the effects, which are all taken.
fn next_request(election: &mut Election) -> Option<Request> {
    effects(election).filter_map(|effect| if let Effect::Send(request) = effect { Some(request) } else { None }).last()
}
