//! No word makes a takeover come early.

use std::time::Duration;

use leaderelection::election::{Answer, Failure, Heard, Input, Request, Rules, Write};
use leaderelection::{LeaderElectionRecord, StoreErrorKind, Version, VersionedRecord};
use proptest::prelude::*;

use super::super::steps::Play;
use super::{TOKEN, ended, id, landed};
use crate::support::record;

/// An event of a world with a leader, a follower, a store that may show what is old, and a peer that says anything but the
/// id of a write that was not sent so far.
#[derive(Clone, Debug)]
enum Turn {
    Pass(u64),
    Send,
    Land(usize),
    Read(usize),
    FailRead,
    Hear { write: usize, number: u64 },
    Invent(u64),
    HearEnd,
    HearNothing,
}

fn turns() -> impl Strategy<Value = Turn> {
    prop_oneof![
        6 => (0u64..4).prop_map(Turn::Pass),
        3 => Just(Turn::Send),
        3 => (0usize..3).prop_map(Turn::Land),
        5 => prop_oneof![4 => Just(0usize), 1 => 0usize..3].prop_map(Turn::Read),
        1 => Just(Turn::FailRead),
        4 => (0usize..3, 0u64..20).prop_map(|(write, number)| Turn::Hear { write, number }),
        1 => (0u64..20).prop_map(Turn::Invent),
        1 => Just(Turn::HearEnd),
        1 => Just(Turn::HearNothing),
    ]
}

proptest! {
    /// The lease of the version that a takeover names was sent one lease before, or earlier.
    #[test]
    fn no_word_makes_a_takeover_come_early(turns in prop::collection::vec(turns(), 1..120), jitter in any::<u32>()) {
        const LEASE: Duration = Duration::from_nanos(6);
        let mut rules = Rules::new("a", LEASE, Duration::from_nanos(4), Duration::from_nanos(2));
        rules.infrequent_interval = Duration::from_nanos(9);
        let mut play = Play::new(rules, jitter);
        // The moments at which writes were sent, by their numbers, and the writes that have landed.
        let (mut sent, mut landed_writes) = (vec![play.now], vec![0usize]);
        let mut reads = play.request() == Some(Request::Look);
        for turn in turns {
            let back = |from: &Vec<usize>, by: usize| from[from.len().saturating_sub(1 + by)];
            let input = match turn {
                Turn::Pass(nanos) => {
                    play.now = play.now + Duration::from_nanos(nanos);
                    Input::Tick
                }
                Turn::Send => {
                    sent.push(play.now);
                    continue;
                }
                Turn::Land(by) => {
                    let write = (sent.len() - 1).saturating_sub(by);
                    landed_writes.extend((write > back(&landed_writes, 0)).then_some(write));
                    continue;
                }
                Turn::Read(age) if reads => {
                    let write = back(&landed_writes, age);
                    let mut record: LeaderElectionRecord = record("b", LEASE, TOKEN);
                    record.write_id = Some(id(write as u64));
                    let found = VersionedRecord::new(record, Version::new(write.to_string()));
                    Input::Answer(Answer::Read(Ok(Some(found))))
                }
                Turn::FailRead if reads => {
                    let failure =
                        Failure { kind: StoreErrorKind::Rejected, retry_after: None };
                    Input::Answer(Answer::Read(Err(failure)))
                }
                Turn::Read(_) | Turn::FailRead => continue,
                Turn::Hear { write, number } => {
                    Input::Heard(landed(&id((sent.len() - 1).saturating_sub(write) as u64), number))
                }
                Turn::Invent(number) => Input::Heard(landed("invented", number)),
                Turn::HearEnd => Input::Heard(ended()),
                Turn::HearNothing => Input::Heard(Heard::Nothing),
            };
            reads &= !matches!(input, Input::Answer(_));
            play.handle(input);
            reads |= play.request() == Some(Request::Look);
            if let Some(Request::Write(Write { expected, .. })) = play.request() {
                let replaced: usize = expected.unwrap().as_str().parse().unwrap();
                prop_assert!(play.now >= sent[replaced] + LEASE, "replaces write {replaced} too early");
                break;
            }
        }
    }
}
