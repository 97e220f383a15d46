//! No word makes a takeover come early.

use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use leaderelection::election::{Answer, ElectionConfig, Failure, Input, PeerMessage, Request, Write};
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::{LeaderElectionRecord, StoreErrorKind};
use leaderelection_test_support::play::Play;

const LEASE: Duration = Duration::from_nanos(6);
const TOKEN: u64 = 7;

/// An event of a world with a leader, a follower, a store that may show what is old, and a peer that says anything but the
/// id of a write that was not sent so far.
#[derive(Arbitrary, Debug)]
enum Turn {
    Pass(#[arbitrary(with = below::<4>)] u64),
    Send,
    Commit(#[arbitrary(with = below::<3>)] u64),
    ReadNewest,
    Read(#[arbitrary(with = below::<3>)] u64),
    FailRead,
    Message(#[arbitrary(with = below::<3>)] u64, #[arbitrary(with = below::<20>)] u64),
    Invent(#[arbitrary(with = below::<20>)] u64),
    MessageEnd,
    MessageSilence,
}

pub(super) fn below<const END: u64>(input: &mut Unstructured<'_>) -> arbitrary::Result<u64> {
    input.int_in_range(0..=END - 1)
}

/// The lease of the version that a takeover names was sent one lease before, or earlier.
pub(super) fn peer_feed(input: &[u8]) {
    let mut input = Unstructured::new(input);
    let mut rules = ElectionConfig::new("a", LEASE, Duration::from_nanos(4), Duration::from_nanos(2));
    rules.background_interval = Duration::from_nanos(9);
    let mut play = Play::new(rules, input.arbitrary().unwrap_or_default());
    // The moments at which writes were sent, by their numbers, and the writes that are committed.
    let (mut sent, mut committed_writes) = (vec![play.now], vec![0u64]);
    let mut reads = play.request() == Some(Request::Read);
    while !input.is_empty()
        && let Ok(turn) = input.arbitrary()
    {
        let newest = sent.len() as u64 - 1;
        let back = |by: u64| committed_writes[committed_writes.len().saturating_sub(1 + by as usize)];
        let step = match turn {
            Turn::Pass(nanos) => {
                play.now = play.now + Duration::from_nanos(nanos);
                Input::Tick
            }
            Turn::Send => {
                sent.push(play.now);
                continue;
            }
            Turn::Commit(by) => {
                let write = newest.saturating_sub(by);
                if write > back(0) {
                    committed_writes.push(write);
                }
                continue;
            }
            Turn::ReadNewest if reads => shown(back(0)),
            Turn::Read(age) if reads => shown(back(age)),
            Turn::FailRead if reads => {
                Input::Answer(Answer::Read(Err(Failure { kind: StoreErrorKind::Rejected, retry_after: None })))
            }
            Turn::ReadNewest | Turn::Read(_) | Turn::FailRead => continue,
            Turn::Message(write, number) => Input::Message(committed(&id(newest.saturating_sub(write)), number)),
            Turn::Invent(number) => Input::Message(committed("invented", number)),
            Turn::MessageEnd => {
                Input::Message(PeerMessage::Ended { holder: "b".to_owned(), fencing_token: TOKEN.into() })
            }
            Turn::MessageSilence => Input::Message(PeerMessage::Nothing),
        };
        reads &= !matches!(step, Input::Answer(_));
        play.handle(step);
        reads |= play.request() == Some(Request::Read);
        if let Some(Request::Write(Write { expected, .. })) = play.request() {
            let replaced: usize = expected.unwrap().as_str().parse().unwrap();
            assert!(play.now >= sent[replaced] + LEASE, "replaces write {replaced} too early");
            return;
        }
    }
}

fn id(write: u64) -> String {
    format!("b-{write}")
}

/// The answer that shows a write of the leader.
fn shown(write: u64) -> Input {
    let mut record = LeaderElectionRecord::new("b", LEASE);
    (record.leader_transitions, record.write_id) = (TOKEN, Some(id(write)));
    Input::Answer(Answer::Read(Ok(Some(VersionedRecord::new(record, Version::new(write.to_string()))))))
}

fn committed(write_id: &str, number: u64) -> PeerMessage {
    PeerMessage::Committed {
        holder: "b".to_owned(),
        fencing_token: TOKEN.into(),
        write_id: write_id.to_owned(),
        number,
    }
}
