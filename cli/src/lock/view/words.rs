//! The status of a lock in words, with the names of those who are concerned.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::history::EndedTerm;

use super::View;
use crate::cause::Cause;
use crate::exit::Failure;
use crate::lock::status::{Age, LockStatus};
use crate::lock::text::{ago, shell_word};

/// The largest number of bytes of a name in a next step.
const LONGEST_NAME: usize = 48;

/// The result of a command that succeeded.
const SUCCESS: &str = "exit code 0";

impl View {
    /// Tells the status in a sentence, in which `name` shows the names, and for how long it has lasted, where that is known.
    pub(crate) fn sentence(&self, name: impl Fn(&str) -> String, lasted: Option<&str>) -> String {
        let holder = name(self.holder.as_deref().unwrap_or_default());
        let what = self.what();
        let holds = if self.session.is_some() { "leads" } else { "holds the lease" };
        let next = self.preferred_holder.as_deref().map(&name);
        let lasting = lasted.map(|span| format!(", for {span}")).unwrap_or_default();
        let past = lasted.map(|span| format!(" {span} ago")).unwrap_or_default();
        match self.status {
            LockStatus::Led => format!("{holder} leads{lasting}"),
            LockStatus::Held => format!("{holder} {holds}{lasting}"),
            LockStatus::HandingOver => {
                let held = if lasted.is_some() { format!("{holds}{lasting}, and ") } else { String::new() };
                format!("{holder} {held}is asked to hand over to {}", next.unwrap_or_default())
            }
            LockStatus::Doubtful => {
                let ago = self.renewed().map(|renewed| ago(renewed, SystemClock.wall_time())).unwrap_or_default();
                format!("probably nobody leads: {holder} last renewed the {what} {ago}, by its own clock")
            }
            LockStatus::Expired => {
                let lasting = lasted.map(|span| format!(", not renewed for {span}")).unwrap_or_default();
                format!("nobody leads: the {what} of {holder} has expired{lasting}")
            }
            LockStatus::Free => match (&self.session, next) {
                (Some(session), _) => {
                    let ended = if lasted.is_some() { "ended" } else { "has ended" };
                    format!("nobody leads: the session of {} {ended}{past}", name(&session.holder))
                }
                (None, Some(next)) => format!("nobody leads: the lease is free{lasting}; {next} is to lead next"),
                (None, None) => format!("nobody leads: the lease is free{lasting}"),
            },
            LockStatus::Failed => {
                let place = self.failed.as_ref().map(|(holder, _)| format!(" on {}", name(holder))).unwrap_or_default();
                format!("nobody leads: the last work failed{place}{past}")
            }
            LockStatus::Absent if self.holder.is_some() => {
                format!("nobody leads: the object was deleted while {holder} held the {what}")
            }
            LockStatus::Absent => "nobody leads: the object does not exist".to_owned(),
            LockStatus::DuplicateIdentity => format!("another process leads with the same identity, {holder}"),
            LockStatus::Unknown(Cause::NotARecord) => {
                let lasting = lasted.map(|span| format!(" (seen for {span})")).unwrap_or_default();
                format!("nobody can lead: {}{lasting}", Cause::NotARecord)
            }
            LockStatus::Unknown(cause) => format!("the leader is unknown: {cause}"),
        }
    }

    /// The sentence, with the problem behind it.
    pub(crate) fn with_problem(&self) -> String {
        self.problem.as_ref().map_or_else(|| self.to_string(), |problem| format!("{self}: {problem}"))
    }

    /// The next step of somebody who was called for this lock; `None` if nobody is needed.
    pub(crate) fn next_step(&self) -> Option<String> {
        let step = match (self.status, &self.preferred_holder) {
            (LockStatus::Free, Some(_)) => {
                "start NEXT, which leads at once; any other candidate, also one that waits already, leads after one lease"
            }
            (status, _) => status.next_step()?,
        };
        // The lease is one word of the command.
        let lease = humantime::format_duration(self.lease().unwrap_or(Duration::from_secs(60))).to_string();
        let next = self.preferred_holder.as_deref().filter(|next| next.len() <= LONGEST_NAME);
        Some(
            step.replace("LEASE", &lease.replace(' ', ""))
                .replace("URL`", &format!("{}`", shell_word(&self.lock)))
                .replace("NEXT", next.unwrap_or("that candidate")),
        )
    }

    /// A text about this lock, with the next step if the lock is in trouble.
    pub(crate) fn advised(&self, text: String) -> String {
        match self.next_step().filter(|_| self.status.is_trouble()) {
            Some(step) => format!("{text}; {step}"),
            None => text,
        }
    }

    /// The last leader of a lock whose store does not tell it now, as a sentence begins.
    pub(crate) fn last_leader(&self, name: impl Fn(&str) -> String) -> String {
        let holder = self.holder.as_deref().map_or_else(|| "Nobody".to_owned(), name);
        format!("{holder} held the {} when the store last answered", self.what())
    }

    /// The time since which the lease is held or free, by the clock of the one who wrote that.
    pub(crate) fn since(&self) -> Option<DateTime<Utc>> {
        if let Some((_, Some(at))) = self.failed {
            return Some(at);
        }
        let ended = self.session.as_ref().filter(|session| session.has_ended());
        let times = ended.map_or(self.by_holders_clock, |session| session.object.as_ref()?.by_holders_clock);
        times?.acquire_time
    }

    fn what(&self) -> &'static str {
        if self.session.is_some() { "session" } else { "lease" }
    }

    /// The sentence, with the problem or the term.
    pub(crate) fn with_term(&self) -> String {
        let Some(token) = self.fencing_token.filter(|_| self.problem.is_none()) else { return self.with_problem() };
        match (&self.holder, &self.session) {
            (None, _) => format!("{self} (last fencing token {token})"),
            (_, session) => {
                let session = session.as_ref().map(|session| format!(", session {}", session.id)).unwrap_or_default();
                let lease = humantime::format_duration(self.lease().unwrap_or_default());
                format!("{self} (fencing token {token}{session}, lease {lease})")
            }
        }
    }

    /// Adds what the polls so far and the store tell of the age of the lease.
    pub(crate) fn aged(self, age: Option<&Age>, store_age: Option<Duration>, now: DateTime<Utc>) -> Self {
        let of_lease = LockStatus::of_lease(self.lease(), age, store_age, self.renewed(), now);
        let is_expired = of_lease == LockStatus::Expired;
        match self.status {
            LockStatus::Held => Self { status: of_lease, ..self },
            LockStatus::HandingOver if is_expired => Self { status: of_lease, ..self },
            _ => self,
        }
    }

    /// Adds the last term that the history of the lock knows. The next candidate need not come soon.
    pub(crate) fn after(self, last: Option<&EndedTerm>) -> Self {
        let last =
            last.filter(|last| self.status == LockStatus::Free && Some(last.fencing_token) == self.fencing_token);
        match last.and_then(|last| Some((last, failure(last)?))) {
            Some((last, problem)) => {
                let failed = Some((last.holder.clone(), last.to));
                Self { status: LockStatus::Failed, failed, problem: Some(problem), ..self }
            }
            None => self,
        }
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence(str::to_owned, None))
    }
}

/// The failure of a command that was asked who leads.
pub(crate) fn leader_unknown(failure: Failure) -> Failure {
    let Some(cause) = failure.cause else { return failure };
    let view = View { status: LockStatus::Unknown(cause), problem: Some(failure.to_string()), ..View::default() };
    failure.in_words(view.advised(view.with_problem()))
}

/// The failure of the work of a term that failed, or did not come to its end.
pub(crate) fn failure(term: &EndedTerm) -> Option<String> {
    let is_end = term.why.is_on_purpose();
    match &term.result {
        Some(result) if is_end => (result != SUCCESS).then(|| result.clone()),
        Some(result) => Some(format!("{result}; {}", term.why)),
        None => (!is_end).then(|| term.why.to_string()),
    }
}
