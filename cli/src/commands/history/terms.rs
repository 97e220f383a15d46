//! The terms that a sequence of records shows.

use chrono::{DateTime, Utc};
use leaderelection::history::EndedTerm;
use leaderelection::{FencingToken, LeaderElectionRecord, TermEndReason, VersionedObject};
use serde::{Deserialize, Serialize};

use crate::lock::view::as_time;

/// A term of a leader, as far as its writes are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Term {
    pub(super) holder: String,
    pub(super) fencing_token: FencingToken,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(serialize_with = "as_time")]
    pub(super) since: Option<DateTime<Utc>>,
    /// The last renewal that is known.
    #[serde(serialize_with = "as_time", skip_serializing_if = "Option::is_none")]
    renewed: Option<DateTime<Utc>>,
    /// The end of the term, as the history beside the lock has it.
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
    /// The reason for the end; `None` if the term is the last one that the records show.
    pub(super) ended: Option<TermEndReason>,
}

impl Term {
    /// The end of the term, or the last renewal that is known.
    pub(super) fn until(&self) -> Option<DateTime<Utc>> {
        self.until.or(self.renewed)
    }

    /// The job of the term and the result of its work; empty if nobody has told.
    pub(super) fn work(&self) -> String {
        let told = self.job.iter().chain(&self.result);
        told.cloned().collect::<Vec<_>>().join(": ")
    }
}

/// The fields of a record that a history shows, of a lock with a lease or of a session.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields {
    holder_identity: String,
    leader_transitions: u64,
    acquire_time: Option<String>,
    renew_time: Option<String>,
    write_id: Option<String>,
    preferred_holder: Option<String>,
    session: Option<String>,
}

impl Fields {
    fn has_holder(&self) -> bool {
        !self.holder_identity.is_empty()
    }

    fn is_of_term(&self, term: &Self) -> bool {
        (&self.holder_identity, self.leader_transitions) == (&term.holder_identity, term.leader_transitions)
    }

    /// The part of the write id that all writes of one elector share.
    fn writer(&self) -> Option<&str> {
        self.write_id.as_deref()?.split('-').next()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kept {
    Record(Fields),
    Deletion,
    Other,
}

/// Returns the terms of the kept objects, oldest first.
pub(super) fn terms(objects: &[VersionedObject]) -> Vec<Term> {
    let kept = that_counted(objects);
    let mut terms: Vec<Term> = Vec::new();
    let mut before: Option<Fields> = None;
    for (version, next) in kept {
        if let (Some(term), Some(last)) = (terms.last_mut(), &before)
            && term.ended.is_none()
        {
            if let Kept::Record(fields) = &next
                && fields.is_of_term(last)
            {
                (term.last_version, term.renewed) = (Some(version), time(fields.renew_time.as_deref()));
                before = Some(fields.clone());
                continue;
            }
            term.ended = Some(end(last, &next));
        }
        before = None;
        if let Kept::Record(fields) = next
            && fields.has_holder()
        {
            terms.push(Term {
                holder: fields.holder_identity.clone(),
                fencing_token: fields.leader_transitions.into(),
                session: fields.session.clone(),
                since: time(fields.acquire_time.as_deref()),
                renewed: time(fields.renew_time.as_deref()),
                first_version: Some(version),
                last_version: Some(version),
                ..Term::default()
            });
            before = Some(fields);
        }
    }
    terms
}

/// Adds what the history beside the lock tells, and the term that the lock shows now.
pub(super) fn complete(mut terms: Vec<Term>, history: Vec<EndedTerm>, now: Option<&LeaderElectionRecord>) -> Vec<Term> {
    for EndedTerm { holder, fencing_token, from, to, why, job, result, .. } in history {
        let is_it = |term: &&mut Term| (&term.holder, term.fencing_token) == (&holder, fencing_token);
        let known = terms.iter_mut().find(is_it);
        match known {
            // The writes show as much.
            Some(_) if matches!(why, TermEndReason::Expired { .. }) => {}
            Some(term) => (term.until, term.job, term.result, term.ended) = (to, job, result, Some(why)),
            None => {
                let (since, ended) = (from, Some(why));
                terms.push(Term { holder, fencing_token, since, until: to, job, result, ended, ..Term::default() });
            }
        }
    }
    terms.sort_by_key(|term| term.fencing_token);
    if let Some(record) = now.filter(|record| !record.is_released())
        && !terms.iter().any(|term| term.fencing_token >= record.leader_transitions.into())
    {
        terms.push(Term {
            holder: record.holder_identity.clone(),
            fencing_token: record.leader_transitions.into(),
            session: record.session.clone(),
            since: record.acquire_time,
            renewed: record.renew_time,
            ..Term::default()
        });
    }
    terms
}

fn time(text: Option<&str>) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text?).ok().map(|time| time.to_utc())
}

/// Leaves out what never counted: a creation that landed late, at a number that had been removed.
///
/// Numbers are kept without a gap, so what is before a gap is such a creation. Without a gap, its token is larger than the
/// next record's, or it gives that token to another holder.
fn that_counted(objects: &[VersionedObject]) -> Vec<(u64, Kept)> {
    let mut counted: Vec<(u64, Kept)> = Vec::new();
    for object in objects.iter().rev() {
        let Ok(version) = object.version.as_str().parse() else { continue };
        let kept = match serde_json::from_slice(&object.body) {
            Ok(fields) => Kept::Record(fields),
            Err(_) if object.body.is_empty() => Kept::Deletion,
            Err(_) => Kept::Other,
        };
        match counted.last() {
            Some((next, _)) if *next != version + 1 => break,
            Some((_, Kept::Record(next))) => {
                if let Kept::Record(fields) = &kept
                    && contradicts(fields, next)
                {
                    break;
                }
            }
            _ => {}
        }
        counted.push((version, kept));
    }
    counted.reverse();
    counted
}

fn contradicts(fields: &Fields, next: &Fields) -> bool {
    let has_other_holder = fields.has_holder() && next.has_holder() && fields.holder_identity != next.holder_identity;
    fields.leader_transitions > next.leader_transitions
        || (fields.leader_transitions == next.leader_transitions && has_other_holder)
}

/// The reason for the end of a term, from the write that came after it.
fn end(last: &Fields, next: &Kept) -> TermEndReason {
    match next {
        Kept::Deletion => TermEndReason::Deleted,
        Kept::Other => TermEndReason::Unreadable,
        Kept::Record(next) if next.has_holder() && last.session.is_some() => {
            TermEndReason::TakenOver { by: next.holder_identity.clone() }
        }
        Kept::Record(next) if next.has_holder() => TermEndReason::Expired { by: Some(next.holder_identity.clone()) },
        Kept::Record(next) => match (&next.preferred_holder, last.writer().zip(next.writer())) {
            (Some(to), _) => TermEndReason::Transferred { to: to.clone() },
            (None, Some((holder, releaser))) if holder != releaser => TermEndReason::Emptied,
            (None, _) => TermEndReason::Released,
        },
    }
}

#[cfg(test)]
mod tests {
    use leaderelection::Version;

    use super::*;

    fn object(version: u64, body: &str) -> VersionedObject {
        VersionedObject::new(body.to_owned(), Version::new(version.to_string()))
    }

    fn record(version: u64, holder: &str, token: u64, rest: &str) -> VersionedObject {
        let body =
            format!(r#"{{"holderIdentity":"{holder}","leaderTransitions":{token},"leaseDuration":"15s"{rest}}}"#);
        object(version, &body)
    }

    fn ends(objects: &[VersionedObject]) -> Vec<(String, u64, String)> {
        terms(objects)
            .into_iter()
            .map(|term| {
                (term.holder, term.fencing_token.into(), term.ended.map(|why| why.to_string()).unwrap_or_default())
            })
            .collect()
    }

    fn expected(terms: &[(&str, u64, &str)]) -> Vec<(String, u64, String)> {
        terms.iter().map(|(holder, token, end)| ((*holder).to_owned(), *token, (*end).to_owned())).collect()
    }

    #[test]
    fn every_end_is_told_apart() {
        let objects = [
            record(7, "a", 3, r#","writeId":"aa-1-x""#),
            record(8, "a", 3, r#","writeId":"aa-2-y""#),
            record(9, "", 3, r#","writeId":"aa-3-z""#),
            record(10, "b", 4, r#","writeId":"bb-1-x""#),
            record(11, "", 4, r#","writeId":"0198-operator""#),
            record(12, "c", 5, ""),
            record(13, "", 5, r#","preferredHolder":"d""#),
            record(14, "d", 6, ""),
            record(15, "e", 7, ""),
            record(16, "e", 8, ""),
            object(17, ""),
            record(18, "f", 9, r#","session":"s-1""#),
            record(19, "g", 10, r#","session":"s-2""#),
            object(20, "somebody's photo"),
            record(21, "h", 11, ""),
        ];
        let expected = expected(&[
            ("a", 3, "the lease was released"),
            ("b", 4, "the lease was released by somebody else"),
            ("c", 5, "the lease is handed over to \"d\""),
            ("d", 6, "the lease expired, and was taken over by \"e\""),
            ("e", 7, "the lease expired, and was taken over by \"e\""),
            ("e", 8, "the lock's object was deleted"),
            ("f", 9, "the lease was taken over by \"g\""),
            ("g", 10, "the lock's object was replaced by something that is not a record"),
            ("h", 11, ""),
        ]);
        assert_eq!(ends(&objects), expected);
        let terms = terms(&objects);
        assert_eq!((terms[0].first_version, terms[0].last_version), (Some(7), Some(8)));
    }

    #[test]
    fn the_history_beside_the_lock_completes_what_the_writes_show() {
        let writes = terms(&[record(1, "b", 2, ""), record(2, "c", 3, ""), record(3, "c", 3, "")]);
        let history = leaderelection::history::parse(
            br#"{"terms":[{"holder":"a","fencingToken":1,"why":"work_finished","job":"monday","result":"exit code 0"},
            {"holder":"b","fencingToken":2,"why":"expired","next":"c"},
            {"holder":"c","fencingToken":3,"to":"2026-02-02T03:00:00Z","why":"renew_deadline"}]}"#,
        );
        let mut now = LeaderElectionRecord::new("d", std::time::Duration::from_secs(15));
        now.leader_transitions = 4;
        let terms = complete(writes, history.unwrap(), Some(&now));
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
    fn a_creation_that_landed_late_is_no_term() {
        let gap = [record(2, "stalled", 1, ""), record(5, "a", 0, ""), record(6, "a", 0, "")];
        assert_eq!(ends(&gap), expected(&[("a", 0, "")]));
        let same_token = [record(4, "stalled", 1, ""), record(5, "a", 1, "")];
        assert_eq!(ends(&same_token), expected(&[("a", 1, "")]));
        let larger_token = [record(4, "stalled", 2, ""), record(5, "a", 1, "")];
        assert_eq!(ends(&larger_token), expected(&[("a", 1, "")]));
    }
}
