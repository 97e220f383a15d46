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
