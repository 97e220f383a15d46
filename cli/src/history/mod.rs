//! The terms of a lock, told in one way by all commands, whichever source knows of them.
//!
//! `writes` reads the kept writes of a lock, and `beside` the object that candidates with --keep-history write beside it.
//! The pages add what they see themselves: the dashboard its polls, and `serve` the transitions of its elector.

pub(crate) mod beside;
mod writes;

use chrono::{DateTime, Utc};
use leaderelection::history::EndedTerm;
use leaderelection::{FencingToken, LeaderElectionRecord, TermEndReason};
use serde::Serialize;

pub(crate) use self::writes::terms;
use crate::lock::view::as_time;

/// A term of a leader, as far as it is known. Times are by the clock of the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Term {
    pub(crate) holder: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fencing_token: Option<FencingToken>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(serialize_with = "as_time")]
    pub(crate) since: Option<DateTime<Utc>>,
    /// The last renewal that is known.
    #[serde(serialize_with = "as_time", skip_serializing_if = "Option::is_none")]
    renewed: Option<DateTime<Utc>>,
    /// The end of the term, if its source knows the moment.
    #[serde(serialize_with = "as_time", skip_serializing_if = "Option::is_none")]
    until: Option<DateTime<Utc>>,
    /// The first and the last of the kept writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    /// The reason for the end; `None` while the term lasts, as far as its source knows.
    pub(crate) ended: Option<TermEndReason>,
}

impl Term {
    pub(crate) fn begin(holder: &str, fencing_token: Option<FencingToken>, since: DateTime<Utc>) -> Self {
        Self { holder: holder.to_owned(), fencing_token, since: Some(since), ..Self::default() }
    }

    /// Ends the term, unless it has ended.
    pub(crate) fn end(&mut self, at: DateTime<Utc>, reason: TermEndReason) {
        if self.ended.is_none() {
            (self.until, self.ended) = (Some(self.since.map_or(at, |since| at.max(since))), Some(reason));
        }
    }

    /// Records that the term lasted at this moment.
    pub(crate) fn seen(&mut self, at: DateTime<Utc>) {
        self.renewed = self.renewed.max(Some(at));
    }

    /// Ends the term at the moment at which it was last seen to last, unless it has ended.
    pub(crate) fn end_when_last_seen(&mut self, why: &str) {
        if let Some(at) = self.renewed.or(self.since) {
            self.end(at, TermEndReason::Other { name: why.to_owned(), next: None });
        }
    }

    /// The end of the term, or the last renewal that is known.
    pub(crate) fn until(&self) -> Option<DateTime<Utc>> {
        self.until.or(self.renewed)
    }

    /// The job of the term and the result of its work; empty if the holder has reported neither.
    pub(crate) fn work(&self) -> String {
        let reported = self.job.iter().chain(&self.result);
        reported.cloned().collect::<Vec<_>>().join(": ")
    }

    fn is(&self, ended: &EndedTerm) -> bool {
        (&self.holder, self.fencing_token) == (&ended.holder, Some(ended.fencing_token))
    }
}

/// Adds the history beside the lock to the terms of another source. The holder knows best why its term ended, and when.
pub(crate) fn join(terms: &mut Vec<Term>, history: &[EndedTerm]) {
    for ended in history {
        let EndedTerm { holder, fencing_token, from, to, why, job, result, .. } = ended.clone();
        let known = terms.iter_mut().find(|term| term.is(ended));
        match known {
            // The next leader has written this, and the kept writes show as much.
            Some(term) if term.last_version.is_some() && matches!(why, TermEndReason::Expired { .. }) => {}
            Some(term) => {
                term.since = from.or(term.since);
                (term.until, term.job, term.result, term.ended) = (to, job, result, Some(why));
            }
            None => terms.push(Term {
                holder,
                fencing_token: Some(fencing_token),
                since: from,
                until: to,
                job,
                result,
                ended: Some(why),
                ..Term::default()
            }),
        }
    }
}

/// Adds the term that the lock shows now, and brings all into the order of their tokens.
pub(crate) fn complete(terms: &mut Vec<Term>, now: Option<&LeaderElectionRecord>) {
    terms.sort_by_key(|term| term.fencing_token);
    if let Some(record) = now.filter(|record| !record.is_released())
        && !terms.iter().any(|term| term.fencing_token >= Some(record.leader_transitions.into()))
    {
        terms.push(Term {
            holder: record.holder_identity.clone(),
            fencing_token: Some(record.leader_transitions.into()),
            session: record.session.clone(),
            since: record.acquire_time,
            renewed: record.renew_time,
            ..Term::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use leaderelection::implement::{Version, VersionedObject};

    use super::*;

    #[test]
    fn the_history_beside_the_lock_completes_what_the_writes_show() {
        let write = |version: u64, holder: &str, token: u64| {
            let body = format!(r#"{{"holderIdentity":"{holder}","leaderTransitions":{token},"leaseDuration":"15s"}}"#);
            VersionedObject::new(body, Version::new(version.to_string()))
        };
        let mut terms = terms(&[write(1, "b", 2), write(2, "c", 3), write(3, "c", 3)]);
        let history = leaderelection::history::parse(
            br#"{"terms":[{"holder":"a","fencingToken":1,"why":"work_finished","job":"monday","result":"exit code 0"},
            {"holder":"b","fencingToken":2,"why":"expired","next":"c"},
            {"holder":"c","fencingToken":3,"to":"2026-02-02T03:00:00Z","why":"renew_deadline"}]}"#,
        );
        let mut now = LeaderElectionRecord::new("d", std::time::Duration::from_secs(15));
        now.leader_transitions = 4;
        join(&mut terms, &history.unwrap());
        complete(&mut terms, Some(&now));
        let told: Vec<_> =
            terms.into_iter().map(|term| (term.holder.clone(), term.ended.clone(), term.work())).collect();
        let told: Vec<_> = told.iter().map(|(holder, ended, work)| (&**holder, ended.as_ref(), &**work)).collect();
        assert_eq!(
            told,
            [
                ("a", Some(&TermEndReason::WorkFinished), "monday: exit code 0"),
                ("b", Some(&TermEndReason::Expired { by: Some("c".to_owned()) }), ""),
                ("c", Some(&TermEndReason::RenewDeadline), ""),
                ("d", None, ""),
            ]
        );
    }

    #[test]
    fn the_history_beside_the_lock_corrects_what_the_polls_have_shown() {
        let at = |seconds| DateTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let mut terms = vec![Term::begin("b", Some(2.into()), at(20)), Term::begin("c", Some(3.into()), at(40))];
        terms[0].end(at(40), TermEndReason::TakenOver { by: "c".to_owned() });
        let history = leaderelection::history::parse(
            br#"{"terms":[{"holder":"a","fencingToken":1,"from":"1970-01-01T00:00:05Z","why":"expired","next":"b"},
            {"holder":"b","fencingToken":2,"from":"1970-01-01T00:00:18Z","to":"1970-01-01T00:00:37Z","why":"cancelled"}]}"#,
        );
        let history = history.unwrap();
        for _ in 0..2 {
            join(&mut terms, &history);
            complete(&mut terms, None);
            let known: Vec<_> =
                terms.iter().map(|term| (&*term.holder, term.since, term.until(), term.ended.as_ref())).collect();
            assert_eq!(
                known,
                [
                    ("a", Some(at(5)), None, Some(&TermEndReason::Expired { by: Some("b".to_owned()) })),
                    ("b", Some(at(18)), Some(at(37)), Some(&TermEndReason::Cancelled)),
                    ("c", Some(at(40)), None, None),
                ]
            );
        }
    }
}
