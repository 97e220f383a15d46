//! Reads that show what a listing has shown to be replaced.

use std::time::Duration;

use leaderelection::clock::LocalInstant;
use leaderelection::election::{Answer, Failure, Heard, Request};
use leaderelection::sessions::machine::{Effect, Input, Member, Page, PeerRequest, SessionId};
use leaderelection::{LeaderElectionRecord, StoreErrorKind, Version, VersionedRecord};

use super::fleet::{Ids, rules};

const LEASE: Duration = Duration::from_secs(15);

/// Returns the object of the session of a member after so many writes.
fn object(member: &str, write: usize) -> VersionedRecord {
    let mut record = LeaderElectionRecord::new(member, LEASE);
    record.write_id = Some(format!("{member}{write}"));
    VersionedRecord::new(record, Version::new(write.to_string()))
}

/// Returns what is shown: the first write until the second was heard of, then one after the other, and the last for ever.
fn next(shown: &mut Vec<usize>, is_told: bool) -> usize {
    match is_told {
        true if shown.len() > 1 => shown.remove(0),
        true => shown[0],
        false => 1,
    }
}

#[test]
fn the_word_about_a_write_dates_no_later_write() {
    // A member that lists sessions, because it does not hear the third.
    let mut rules = rules("b");
    rules.reads_per_listing = 0;
    let (session, silent) = (SessionId::from("a"), SessionId::from("c"));
    let (mut member, mut ids) = (Member::new(rules), Ids { name: "b".to_owned(), drawn: 0 });
    let (mut now, mut inputs) = (LocalInstant::default(), vec![Input::Begin]);
    // A listing shows the third write, and the read after that the second.
    let (mut listed, mut read, mut listed_at) = (vec![2, 3], vec![2, 3], None);
    for tick in 0..600 {
        let is_told = tick >= 100;
        if tick == 100 {
            let heard =
                Heard::Landed { holder: "a".to_owned(), fencing_token: 0, write_id: "a2".to_owned(), number: 2 };
            inputs.push(Input::Heard { session: session.clone(), heard });
        }
        inputs.insert(0, Input::Tick);
        while let Some(input) = inputs.pop() {
            member.handle(now, input, &mut ids);
            while let Some(effect) = member.next() {
                inputs.push(match effect {
                    Effect::Own { session, request: Request::Look } => {
                        Input::Own { session, answer: Answer::Read(Ok(None)) }
                    }
                    Effect::Own { session, .. } => {
                        Input::Own { session, answer: Answer::Written(Ok(Version::new(tick.to_string()))) }
                    }
                    Effect::ListSessions { .. } => {
                        let write = next(&mut listed, is_told);
                        if write == 3 {
                            listed_at.get_or_insert(now);
                        }
                        let versions = [(&session, write), (&silent, tick)];
                        let listed = versions.map(|(id, write)| (id.clone(), Some(Version::new(write.to_string()))));
                        Input::Sessions(Ok(Page::only(listed.into())))
                    }
                    Effect::Peer { session: id, request: PeerRequest::Look } => {
                        let write = if id == session { next(&mut read, is_told) } else { tick };
                        Input::Peer { answer: Answer::Read(Ok(Some(object(&id, write)))), session: id }
                    }
                    Effect::Peer { session, request: PeerRequest::End(write) } => {
                        if write.expected == Some(Version::new("3")) {
                            let listed_at = listed_at.expect("a listing of the third write");
                            return assert!(now >= listed_at + LEASE, "{:?}", now.saturating_since(listed_at));
                        }
                        let failure = Failure { kind: StoreErrorKind::Conflict, retry_after: None };
                        Input::Peer { session, answer: Answer::Written(Err(failure)) }
                    }
                    _ => continue,
                });
            }
        }
        now = now + Duration::from_millis(100);
    }
    panic!("the session was not ended");
}

/// Lets a session be renewed three times, so many ticks of a tenth of a second apart, and another session end. Reads show the first
/// as it was 25 ticks before, until shortly after that end. Returns the ticks from the last renewal to the end of the session by a
/// member that lists both, and reads the one that is left.
fn ended_after(period: usize, other_ends: usize) -> usize {
    let mut rules = rules("b");
    // One listing costs less than reads of two, and more than reads of one.
    rules.reads_per_listing = 2;
    rules.look_around = Duration::from_secs(5);
    let sessions = ["a", "c"].map(SessionId::from);
    let (mut member, mut ids) = (Member::new(rules), Ids { name: "b".to_owned(), drawn: 0 });
    let (mut now, mut inputs) = (LocalInstant::default(), vec![Input::Begin]);
    for tick in 0..1_000 {
        let found = |id: &str, at: usize| match id {
            "a" => object("a", at.min(period * 3) / period),
            _ if at < other_ends => object("c", at / 20),
            _ => object("", 1_000),
        };
        let read_at = if tick < other_ends + 20 { tick.saturating_sub(25) } else { tick };
        inputs.insert(0, Input::Tick);
        while let Some(input) = inputs.pop() {
            member.handle(now, input, &mut ids);
            while let Some(effect) = member.next() {
                inputs.push(match effect {
                    Effect::Own { session, request: Request::Look } => {
                        Input::Own { session, answer: Answer::Read(Ok(None)) }
                    }
                    Effect::Own { session, .. } => {
                        Input::Own { session, answer: Answer::Written(Ok(Version::new(tick.to_string()))) }
                    }
                    Effect::ListSessions { .. } => {
                        let listed = sessions.iter().map(|id| (id.clone(), Some(found(id, tick).version)));
                        Input::Sessions(Ok(Page::only(listed.collect())))
                    }
                    Effect::Peer { session, request: PeerRequest::Look } => {
                        let at = if *session == *"a" { read_at } else { tick };
                        Input::Peer { answer: Answer::Read(Ok(Some(found(&session, at)))), session }
                    }
                    Effect::Peer { session, request: PeerRequest::End(write) } => {
                        if *session == *"a" && write.expected == Some(found("a", tick).version) {
                            return tick.saturating_sub(period * 3);
                        }
                        let failure = Failure { kind: StoreErrorKind::Conflict, retry_after: None };
                        Input::Peer { session, answer: Answer::Written(Err(failure)) }
                    }
                    _ => continue,
                });
            }
        }
        now = now + Duration::from_millis(100);
    }
    panic!("the session was not ended");
}

#[test]
fn a_listing_that_dates_nothing_leaves_no_date_of_an_earlier_write() {
    for period in 50..70 {
        for other_ends in 100..150 {
            let ticks = ended_after(period, other_ends);
            assert!(ticks >= 150, "ended after {ticks} ticks, by renewals {period} apart and an end at {other_ends}");
        }
    }
}
