//! Reads that show what a listing has shown to be replaced.

use std::time::Duration;

use leaderelection::clock::LocalInstant;
use leaderelection::election::{Answer, Failure, PeerMessage, Request};
use leaderelection::implement::{Version, VersionedRecord};
use leaderelection::sessions::machine::{Effect, Input, Member, Page, PeerRequest, SessionConfig, SessionId};
use leaderelection::{LeaderElectionRecord, StoreErrorKind};

use super::fleet::{Ids, rules};

const LEASE: Duration = Duration::from_secs(15);
const TICK: Duration = Duration::from_millis(100);

/// Returns the object of the session of a member after so many writes.
fn object(member: &str, write: usize) -> VersionedRecord {
    let mut record = LeaderElectionRecord::new(member, LEASE);
    record.write_id = Some(format!("{member}{write}"));
    VersionedRecord::new(record, Version::new(write.to_string()))
}

/// A store with other sessions, as it is at a tick of a tenth of a second.
trait Shown {
    fn list(&mut self, tick: usize) -> Vec<(SessionId, Version)>;
    fn read(&mut self, tick: usize, session: &str) -> VersionedRecord;
    /// Returns `true` if the session that the test is about has this version, so that it can be ended.
    fn ends(&self, tick: usize, session: &str, version: &Version) -> bool;
}

/// Lets the member `b` watch a store until it ends a session, with further inputs at their ticks. Returns the tick of that end.
fn ended_at(rules: SessionConfig, shown: &mut impl Shown, told: Option<(usize, Input)>) -> usize {
    let (mut member, mut ids) = (Member::new(rules), Ids { name: "b".to_owned(), drawn: 0 });
    let (mut now, mut inputs) = (LocalInstant::default(), vec![Input::Begin]);
    for tick in 0..1_000 {
        inputs.extend(told.iter().filter(|(at, _)| *at == tick).map(|(_, input)| input.clone()));
        inputs.insert(0, Input::Tick);
        while let Some(input) = inputs.pop() {
            member.handle(now, input, &mut ids);
            while let Some(effect) = member.next() {
                inputs.push(match effect {
                    Effect::Own { session, request: Request::Read } => {
                        Input::Own { session, answer: Answer::Read(Ok(None)) }
                    }
                    Effect::Own { session, .. } => {
                        Input::Own { session, answer: Answer::Written(Ok(Version::new(tick.to_string()))) }
                    }
                    Effect::ListSessions { .. } => {
                        let listed = shown.list(tick).into_iter().map(|(id, version)| (id, Some(version)));
                        Input::Sessions(Ok(Page::only(listed.collect())))
                    }
                    Effect::Peer { session, request: PeerRequest::Read } => {
                        Input::Peer { answer: Answer::Read(Ok(Some(shown.read(tick, &session)))), session }
                    }
                    Effect::Peer { session, request: PeerRequest::End(write) } => {
                        if write.expected.is_some_and(|version| shown.ends(tick, &session, &version)) {
                            return tick;
                        }
                        let failure = Failure { kind: StoreErrorKind::Conflict, retry_after: None };
                        Input::Peer { session, answer: Answer::Written(Err(failure)) }
                    }
                    _ => continue,
                });
            }
        }
        now = now + TICK;
    }
    panic!("the session was not ended");
}

/// Shows the first write of a session until a message reports the second, then one after the other, and the last forever.
/// Another session is renewed at each tick.
struct Listed {
    listed: Vec<usize>,
    read: Vec<usize>,
    /// The tick of the first listing that showed the third write.
    listed_at: Option<usize>,
}

/// The tick at which a message reports the second write.
const REPORTED_AT: usize = 100;

fn next(shown: &mut Vec<usize>, tick: usize) -> usize {
    match tick >= REPORTED_AT {
        true if shown.len() > 1 => shown.remove(0),
        true => shown[0],
        false => 1,
    }
}

impl Shown for Listed {
    fn list(&mut self, tick: usize) -> Vec<(SessionId, Version)> {
        let write = next(&mut self.listed, tick);
        if write == 3 {
            self.listed_at.get_or_insert(tick);
        }
        [("a", write), ("c", tick)].map(|(id, write)| (id.into(), Version::new(write.to_string()))).into()
    }

    fn read(&mut self, tick: usize, session: &str) -> VersionedRecord {
        object(session, if session == "a" { next(&mut self.read, tick) } else { tick })
    }

    fn ends(&self, _: usize, _: &str, version: &Version) -> bool {
        *version == Version::new("3")
    }
}

#[test]
fn the_word_about_a_write_dates_no_later_write() {
    // A member that lists sessions, because it gets no messages from the third.
    let mut rules = rules("b");
    rules.reads_per_listing = 0;
    // A listing shows the third write, and the read after that the second.
    let mut shown = Listed { listed: vec![2, 3], read: vec![2, 3], listed_at: None };
    let message = PeerMessage::Committed {
        holder: "a".to_owned(),
        fencing_token: 0.into(),
        write_id: "a2".to_owned(),
        number: 2,
    };
    let ended_at = ended_at(rules, &mut shown, Some((REPORTED_AT, Input::Message { session: "a".into(), message })));
    let ticks = ended_at - shown.listed_at.expect("a listing of the third write");
    assert!(TICK * ticks as u32 >= LEASE, "ended after {ticks} ticks");
}

/// A session that is renewed three times, so many ticks apart, and another one that ends. Reads show the first as it was 25 ticks
/// before, until shortly after that end.
struct Renewed {
    period: usize,
    other_ends: usize,
}

impl Renewed {
    fn found(&self, session: &str, at: usize) -> VersionedRecord {
        match session {
            "a" => object("a", at.min(self.period * 3) / self.period),
            _ if at < self.other_ends => object("c", at / 20),
            _ => object("", 1_000),
        }
    }
}

impl Shown for Renewed {
    fn list(&mut self, tick: usize) -> Vec<(SessionId, Version)> {
        ["a", "c"].map(|id| (id.into(), self.found(id, tick).version)).into()
    }

    fn read(&mut self, tick: usize, session: &str) -> VersionedRecord {
        let is_old = session == "a" && tick < self.other_ends + 20;
        self.found(session, if is_old { tick.saturating_sub(25) } else { tick })
    }

    fn ends(&self, tick: usize, session: &str, version: &Version) -> bool {
        session == "a" && *version == self.found("a", tick).version
    }
}

#[test]
fn a_listing_that_dates_nothing_leaves_no_date_of_an_earlier_write() {
    for period in 50..70 {
        for other_ends in 100..150 {
            let mut rules = rules("b");
            // One listing costs less than reads of two, and more than reads of one.
            rules.reads_per_listing = 2;
            rules.scan_interval = Duration::from_secs(5);
            let ticks = ended_at(rules, &mut Renewed { period, other_ends }, None).saturating_sub(period * 3);
            assert!(ticks >= 150, "ended after {ticks} ticks, by renewals {period} apart and an end at {other_ends}");
        }
    }
}
