//! An elector that sends what client-go's sends. It counts its renew deadline from before the request, so that nothing but the
//! server can be to blame for two leaders.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{SecondsFormat, TimeDelta, Utc};
use leaderelection::implement::ConditionalStore;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use super::network::{Chance, Place};
use crate::api::{Server, lease, with};

pub(super) const LEASE: Duration = Duration::from_secs(15);
const DEADLINE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(2);

/// The terms of all electors, with their ends as far as they are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms(Arc<Mutex<BTreeMap<u64, Term>>>);

#[derive(Clone, Debug)]
pub(super) struct Term {
    pub(super) leader: String,
    pub(super) token: u64,
    pub(super) from: Instant,
    pub(super) until: Instant,
}

impl Terms {
    /// Begins a term, and asserts that no other goes on.
    fn begin(&self, leader: &str, token: u64, until: Instant) -> u64 {
        let (mut terms, from) = (self.0.lock().unwrap(), Instant::now());
        for other in terms.values() {
            assert!(other.until <= from, "{leader} leads beside {other:?}, from {from:?} on");
            // client-go goes on with its own Lease that nobody has taken meanwhile.
            let is_larger = other.token < token || other.token == token && other.leader == leader;
            assert!(is_larger, "{leader} leads with the token {token} after {other:?}");
        }
        let number = terms.len() as u64;
        terms.insert(number, Term { leader: leader.to_owned(), token, from, until });
        number
    }

    fn extend(&self, number: u64, until: Instant) {
        let (mut terms, now) = (self.0.lock().unwrap(), Instant::now());
        assert!(terms.keys().all(|other| *other <= number), "{terms:?} goes on beside the next, at {now:?}");
        terms.get_mut(&number).unwrap().until = until;
    }

    /// Ends a term now, if it has not ended.
    fn end(&self, number: u64) {
        let mut terms = self.0.lock().unwrap();
        let term = terms.get_mut(&number).unwrap();
        term.until = term.until.min(Instant::now());
    }

    /// Lets tokens begin anew.
    pub(super) fn forget(&self) {
        self.0.lock().unwrap().clear();
    }

    pub(super) fn all(&self) -> Vec<Term> {
        self.0.lock().unwrap().values().cloned().collect()
    }
}

/// One candidate with a server of its own.
pub(super) struct Elector {
    identity: String,
    server: Server,
    terms: Terms,
    chance: Chance,
    /// The places of a server of both.
    places: Option<[Place; 2]>,
    /// The last Lease in an answer, and when its `spec` was new.
    seen: Option<(Value, Instant)>,
}

impl Elector {
    pub(super) fn new(identity: String, store: impl ConditionalStore, terms: Terms, chance: Chance) -> Self {
        Self { identity, server: Server::on(store), terms, chance, places: None, seen: None }
    }

    /// Lets this elector demand of what it reads that both places have had it, if a write of both places names it.
    pub(super) fn of_both(self, places: [Place; 2]) -> Self {
        Self { places: Some(places), ..self }
    }

    fn judge(&self, shown: &Value) {
        let is_of_both = shown["spec"]["holderIdentity"].as_str().is_some_and(|holder| holder.starts_with("Both"));
        let is_whole = |place: &Place| place.has_had(&shown["spec"]);
        let is_right = !is_of_both || self.places.iter().flatten().all(is_whole);
        assert!(is_right, "{} is shown half of a write: {shown}", self.identity);
    }

    fn see(&mut self, lease: &Value) {
        let changed = self.seen.as_ref().is_none_or(|(seen, _)| seen["spec"] != lease["spec"]);
        match &mut self.seen {
            Some((seen, _)) if !changed => *seen = lease.clone(),
            seen => *seen = Some((lease.clone(), Instant::now())),
        }
    }

    fn is_holder(&self) -> bool {
        self.seen.as_ref().is_some_and(|(seen, _)| seen["spec"]["holderIdentity"] == self.identity.as_str())
    }

    /// Tries once to take the Lease, or to renew it.
    async fn try_once(&mut self, leads: bool) -> bool {
        // A leader renews what it has written, and reads if that fails.
        let written = self.seen.clone().map(|(seen, _)| seen).filter(|_| leads && self.is_holder());
        if let Some(written) = written
            && self.write(&written).await
        {
            return true;
        }
        let found = self.server.send("GET", &format!("{}?timeout=5s", crate::api::WEB), "", "").await;
        if found.status == 404 {
            let created = with(&lease(&self.identity), &json!({"acquireTime": now(), "renewTime": now()}));
            let answer = self.server.post(&created).await;
            if answer.status == 201 {
                self.see(&answer.body);
            }
            return answer.status == 201;
        }
        if found.status != 200 {
            return false;
        }
        self.judge(&found.body);
        self.see(&found.body);
        let Some((shown, since)) = self.seen.clone() else { return false };
        let holder = shown["spec"]["holderIdentity"].as_str().unwrap_or_default();
        if !holder.is_empty() && holder != self.identity && since.elapsed() < LEASE {
            return false;
        }
        self.write(&shown).await
    }

    async fn write(&mut self, shown: &Value) -> bool {
        let transitions = shown["spec"]["leaseTransitions"].as_i64().unwrap_or_default();
        let is_renewal = shown["spec"]["holderIdentity"] == self.identity.as_str();
        let mut written = with(shown, &json!({"renewTime": now(), "leaseDurationSeconds": LEASE.as_secs()}));
        if !is_renewal {
            let spec =
                json!({"holderIdentity": self.identity, "acquireTime": now(), "leaseTransitions": transitions + 1});
            written = with(&written, &spec);
        }
        let target = format!("{}?timeout=5s", crate::api::WEB);
        let answer = self.server.send("PUT", &target, "application/json", written.to_string()).await;
        if answer.status == 200 {
            self.see(&answer.body);
        }
        answer.status == 200
    }

    async fn release(&mut self) {
        if let Some((shown, _)) = self.seen.clone().filter(|_| self.is_holder()) {
            let now = now();
            let empty = json!({"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now, "acquireTime": now});
            self.server.put(&with(&shown, &empty)).await;
        }
    }

    fn token(&self) -> u64 {
        let shown =
            self.seen.as_ref().map(|(shown, _)| shown["metadata"]["annotations"]["leaderelection/token"].clone());
        shown.and_then(|token| token.as_str()?.parse().ok()).expect("a token")
    }

    /// Competes until `ends`, then releases. Whoever drops this future has killed the process. It sometimes freezes.
    pub(super) async fn run(mut self, ends: tokio_util::sync::CancellationToken) {
        loop {
            let sent = Instant::now();
            if self.try_once(false).await && Instant::now() < sent + DEADLINE {
                self.lead(sent, &ends).await;
            }
            if ends.is_cancelled() {
                return;
            }
            self.freeze().await;
            tokio::select! {
                () = sleep(RETRY + self.chance.millis(2_400)) => {}
                () = ends.cancelled() => return,
            }
        }
    }

    async fn freeze(&self) {
        if self.chance.one_in(25) {
            sleep(self.chance.millis(40_000)).await;
        }
    }

    async fn lead(&mut self, sent: Instant, ends: &tokio_util::sync::CancellationToken) {
        let mut until = sent + DEADLINE;
        let term = self.terms.begin(&self.identity, self.token(), until);
        loop {
            tokio::select! {
                () = sleep(RETRY) => {}
                () = ends.cancelled() => break,
            }
            self.freeze().await;
            let sent = Instant::now();
            if sent >= until {
                break;
            }
            let attempt = tokio::select! {
                committed = self.try_once(true) => committed,
                () = sleep_until(until) => break,
            };
            if Instant::now() < until && attempt {
                until = sent + DEADLINE;
                self.terms.extend(term, until);
            } else if !self.is_holder() {
                break;
            }
        }
        self.terms.end(term);
        if ends.is_cancelled() {
            self.release().await;
        }
    }
}

/// The time of the virtual clock, behind some day.
fn now() -> String {
    thread_local!(static BEGAN: Instant = Instant::now());
    let passed = BEGAN.with(|began| Instant::now().saturating_duration_since(*began));
    let day = chrono::DateTime::<Utc>::from_timestamp(1_770_000_000, 0).unwrap();
    (day + TimeDelta::from_std(passed).unwrap()).to_rfc3339_opts(SecondsFormat::Micros, true)
}
