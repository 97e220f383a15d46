//! The state machine under arbitrary events: it never panics, and never leads on nothing.

use std::time::Duration;

use chrono::DateTime;
use leaderelection::clock::LocalInstant;
use leaderelection::election::{Answer, Election, EndReason, Event, Failure, Jitter, Request, Rules, Stamp};
use leaderelection::{StoreErrorKind, Version, VersionedRecord};
use proptest::prelude::*;

use crate::support::record;

/// Something that a driver, a store or the world does, in an order that may make no sense.
#[derive(Clone, Debug)]
enum Deed {
    Pass(u64),
    Poll,
    Show { holder: usize, lease: u64, token: u64, version: u8, ours: bool, preferred: usize },
    ShowNothing,
    FailRead(StoreErrorKind, Option<u64>),
    Write(u8),
    FailWrite(StoreErrorKind, Option<u64>),
    Begin,
    Stop,
    WorkStopped(bool),
    StandBack(u64),
}

fn deeds() -> impl Strategy<Value = Deed> {
    use StoreErrorKind::{Ambiguous, Conflict, Fatal, Rejected, Unreadable};
    let kind = || prop::sample::select(vec![Conflict, Rejected, Ambiguous, Fatal, Unreadable]);
    // From the corners as well as from anywhere.
    let time = || prop_oneof![0u64..5, Just(u64::MAX), any::<u64>()];
    prop_oneof![
        3 => (0u64..4).prop_map(Deed::Pass),
        1 => time().prop_map(Deed::Pass),
        6 => Just(Deed::Poll),
        3 => (0usize..3, 1u64..20, prop_oneof![0u64..4, Just((1 << 53) - 1)], 0u8..4, any::<bool>(), 0usize..3)
            .prop_map(|(holder, lease, token, version, ours, preferred)| {
                Deed::Show { holder, lease, token, version, ours, preferred }
            }),
        1 => Just(Deed::ShowNothing),
        1 => (kind(), prop::option::of(time())).prop_map(|(kind, after)| Deed::FailRead(kind, after)),
        4 => (0u8..4).prop_map(Deed::Write),
        2 => (kind(), prop::option::of(time())).prop_map(|(kind, after)| Deed::FailWrite(kind, after)),
        1 => Just(Deed::Begin),
        1 => Just(Deed::Stop),
        1 => any::<bool>().prop_map(Deed::WorkStopped),
        1 => time().prop_map(Deed::StandBack),
    ]
}

fn rules(reclaim_own_identity: bool) -> Rules {
    let nanos = Duration::from_nanos;
    Rules {
        identity: "a".to_owned(),
        lease_duration: nanos(6),
        renew_deadline: nanos(4),
        retry_period: nanos(2),
        reclaim_own_identity,
    }
}

proptest! {
    #[test]
    fn arbitrary_events_neither_panic_nor_prolong_leadership(
        deeds in prop::collection::vec(deeds(), 1..80),
        reclaim in any::<bool>(),
        jitter in any::<u32>(),
    ) {
        let mut election = Election::new(rules(reclaim));
        let mut now = LocalInstant::default();
        let mut ids = 0u64;
        let mut last_write = None;
        let mut in_flight = None;
        election.begin(now);
        for deed in deeds {
            let before = election.leading(now);
            let mut landed = false;
            let failure = |kind, after: Option<u64>| Failure { kind, retry_after: after.map(Duration::from_nanos) };
            match deed {
                Deed::Pass(nanos) => now = now + Duration::from_nanos(nanos),
                Deed::Poll => {
                    let request = election.poll(now, || {
                        ids += 1;
                        Stamp { write_id: ids.to_string(), time: DateTime::UNIX_EPOCH }
                    });
                    match &request {
                        Some(Request::Create { record } | Request::Update { record, .. }) => {
                            last_write = Some(ids.to_string());
                            prop_assert_eq!(&record.write_id, &last_write);
                            prop_assert!(record.is_released() || record.holder_identity == "a");
                        }
                        Some(Request::Read) | None => {}
                    }
                    prop_assert!(request.is_none() || !election.is_idle());
                    in_flight = request.map(|request| request == Request::Read).or(in_flight);
                }
                Deed::Show { holder, lease, token, version, ours, preferred } => {
                    let mut shown = record(["", "a", "b"][holder], Duration::from_nanos(lease), token);
                    shown.preferred_holder = [None, Some("a"), Some("b")][preferred].map(str::to_owned);
                    if ours {
                        shown.write_id = last_write.clone();
                    }
                    let version = Version::new(version.to_string());
                    // Of what is not in flight, an answer is ignored.
                    landed = in_flight.take_if(|is_read| *is_read).is_some() && ours && last_write.is_some();
                    let shown = VersionedRecord::new(shown, version);
                    election.on_answer(now, Answer::Read(Ok(Some(shown))), Jitter::new(jitter));
                }
                Deed::ShowNothing => {
                    in_flight.take_if(|is_read| *is_read);
                    election.on_answer(now, Answer::Read(Ok(None)), Jitter::new(jitter));
                }
                Deed::FailRead(kind, after) => {
                    in_flight.take_if(|is_read| *is_read);
                    election.on_answer(now, Answer::Read(Err(failure(kind, after))), Jitter::new(jitter));
                }
                Deed::Write(version) => {
                    landed = in_flight.take_if(|is_read| !*is_read).is_some();
                    let version = Version::new(version.to_string());
                    election.on_answer(now, Answer::Written(Ok(version)), Jitter::new(jitter));
                }
                Deed::FailWrite(kind, after) => {
                    in_flight.take_if(|is_read| !*is_read);
                    election.on_answer(now, Answer::Written(Err(failure(kind, after))), Jitter::new(jitter));
                }
                Deed::Begin => {
                    in_flight = None;
                    election.begin(now);
                }
                Deed::Stop => election.stop(now, EndReason::Cancelled),
                Deed::WorkStopped(release) => election.work_stopped(now, release),
                Deed::StandBack(nanos) => election.stand_back_until(LocalInstant::from_nanos(nanos)),
            }
            let after = election.leading(now);
            // Only a write that is known to have landed begins a term or moves its deadline.
            if !landed && let Some(after) = after {
                prop_assert_eq!(before.map(|term| term.valid_until), Some(after.valid_until));
            }
            if let Some(term) = after {
                prop_assert!(now < term.valid_until && term.sent_at <= now);
                prop_assert_eq!(term.valid_until, term.sent_at + Duration::from_nanos(4));
            }
            let mut events = 0;
            while let Some(event) = election.next_event() {
                events += 1;
                let names_nobody = event == Event::LeaderChanged { leader: Some(String::new()) };
                prop_assert!(!names_nobody);
            }
            prop_assert!(events <= 4, "{} events from one call", events);
            let _ = (election.next_wake(), election.stop_by());
        }
    }
}

/// A win that was answered with an error, and is seen to have landed 50 ms before its window closes.
fn late_win(retry_after: Option<Duration>) -> (Election, LocalInstant) {
    let (secs, longest_pause) = (Duration::from_secs, Jitter::new(u32::MAX));
    let (mut election, start) = (Election::new(unhurried()), LocalInstant::default());
    election.begin(start);
    assert_eq!(election.poll(start, no_stamp), Some(Request::Read));
    election.on_answer(start, Answer::Read(Ok(None)), longest_pause);
    let Some(Request::Create { record }) = election.poll(start, stamp) else { panic!("nothing bars a first write") };
    let now = start + secs(10) - Duration::from_millis(50);
    let failure = Failure { kind: StoreErrorKind::Ambiguous, retry_after };
    election.on_answer(now, Answer::Written(Err(failure)), longest_pause);
    assert_eq!(election.poll(now, no_stamp), Some(Request::Read));
    let landed = VersionedRecord::new(record, Version::new("1"));
    election.on_answer(now, Answer::Read(Ok(Some(landed))), longest_pause);
    assert!(election.leading(now).is_some());
    (election, now)
}

#[test]
fn a_win_that_is_seen_late_is_renewed_at_once() {
    let (mut election, now) = late_win(None);
    assert!(matches!(election.poll(now, stamp), Some(Request::Update { .. })), "waits out a pause after a failure");
}

#[test]
fn a_win_that_is_seen_late_is_renewed_no_sooner_than_the_store_asked() {
    let asked = Duration::from_millis(30);
    let (mut election, now) = late_win(Some(asked));
    assert_eq!(election.poll(now, no_stamp), None);
    assert_eq!(election.next_wake(), Some(now + asked));
    assert!(matches!(election.poll(now + asked, stamp), Some(Request::Update { .. })));
}

fn stamp() -> Stamp {
    Stamp { write_id: "won".to_owned(), time: DateTime::UNIX_EPOCH }
}

fn no_stamp() -> Stamp {
    unreachable!("nothing is written over a lease that is alive")
}

/// A leader by these timings, at this moment.
fn leader(rules: Rules) -> (Election, LocalInstant) {
    let (mut election, start) = (Election::new(rules), LocalInstant::default());
    election.begin(start);
    assert_eq!(election.poll(start, no_stamp), Some(Request::Read));
    election.on_answer(start, Answer::Read(Ok(None)), Jitter::default());
    assert!(matches!(election.poll(start, stamp), Some(Request::Create { .. })));
    election.on_answer(start, Answer::Written(Ok(Version::new("1"))), Jitter::default());
    assert!(election.leading(start).is_some());
    (election, start)
}

fn unhurried() -> Rules {
    let secs = Duration::from_secs;
    Rules { lease_duration: secs(15), renew_deadline: secs(10), retry_period: secs(2), ..rules(false) }
}

#[test]
fn a_release_is_sent_no_sooner_than_the_store_asked() {
    let (mut election, start) = leader(unhurried());
    let (renewal, asked) = (start + Duration::from_secs(2), Duration::from_secs(3));
    assert!(matches!(election.poll(renewal, stamp), Some(Request::Update { .. })));
    let failure = Failure { kind: StoreErrorKind::Rejected, retry_after: Some(asked) };
    election.on_answer(renewal, Answer::Written(Err(failure)), Jitter::default());
    election.stop(renewal, EndReason::Cancelled);
    election.work_stopped(renewal, true);
    assert_eq!(election.poll(renewal, no_stamp), None);
    assert_eq!(election.next_wake(), Some(renewal + asked));
    assert!(
        matches!(election.poll(renewal + asked, stamp), Some(Request::Update { record, .. }) if record.is_released())
    );
}

#[test]
fn a_candidate_begins_no_sooner_than_the_store_asked_in_the_term_before() {
    let (mut election, start) = leader(unhurried());
    let (renewal, asked) = (start + Duration::from_secs(8), Duration::from_secs(5));
    assert!(matches!(election.poll(renewal, stamp), Some(Request::Update { .. })));
    let failure = Failure { kind: StoreErrorKind::Rejected, retry_after: Some(asked) };
    election.on_answer(renewal, Answer::Written(Err(failure)), Jitter::default());
    let deadline = start + Duration::from_secs(10);
    election.stop(deadline, EndReason::Cancelled);
    election.work_stopped(deadline, false);
    election.begin(deadline);
    assert_eq!(election.poll(deadline, no_stamp), None);
    assert_eq!(election.next_wake(), Some(renewal + asked));
}

#[test]
fn a_lock_that_is_deleted_during_its_release_is_missed() {
    let (mut election, start) = leader(unhurried());
    election.stop(start, EndReason::Cancelled);
    election.work_stopped(start, true);
    assert!(matches!(election.poll(start, stamp), Some(Request::Update { .. })));
    let conflict = Failure { kind: StoreErrorKind::Conflict, retry_after: None };
    election.on_answer(start, Answer::Written(Err(conflict)), Jitter::default());
    assert_eq!(election.poll(start, no_stamp), Some(Request::Read));
    election.on_answer(start, Answer::Read(Ok(None)), Jitter::default());
    let events: Vec<_> = std::iter::from_fn(|| election.next_event()).collect();
    assert!(events.contains(&Event::Vanished), "{events:?}");
}
