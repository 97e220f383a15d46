//! The terms that the kept writes of a lock show.

use chrono::{DateTime, Utc};
use leaderelection::TermEndReason;
use leaderelection::implement::VersionedObject;
use serde::Deserialize;

use super::Term;

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
enum KeptWrite {
    Record(Fields),
    Deletion,
    Other,
}

/// Returns the terms of the kept objects, oldest first.
pub(crate) fn terms(objects: &[VersionedObject]) -> Vec<Term> {
    let kept = that_counted(objects);
    let mut terms: Vec<Term> = Vec::new();
    let mut before: Option<Fields> = None;
    for (version, next) in kept {
        if let (Some(term), Some(last)) = (terms.last_mut(), &before)
            && term.ended.is_none()
        {
            if let KeptWrite::Record(fields) = &next
                && fields.is_of_term(last)
            {
                (term.last_version, term.renewed) = (Some(version), time(fields.renew_time.as_deref()));
                before = Some(fields.clone());
                continue;
            }
            term.ended = Some(end(last, &next));
        }
        before = None;
        if let KeptWrite::Record(fields) = next
            && fields.has_holder()
        {
            terms.push(Term {
                holder: fields.holder_identity.clone(),
                fencing_token: Some(fields.leader_transitions.into()),
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

fn time(text: Option<&str>) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text?).ok().map(|time| time.to_utc())
}

/// Leaves out what never counted: a creation that was committed late, at a number that had been removed.
///
/// Numbers are kept without a gap, so what is before a gap is such a creation. Without a gap, its token is larger than the
/// next record's, or it gives that token to another holder.
fn that_counted(objects: &[VersionedObject]) -> Vec<(u64, KeptWrite)> {
    let mut counted: Vec<(u64, KeptWrite)> = Vec::new();
    for object in objects.iter().rev() {
        let Ok(version) = object.version.as_str().parse() else { continue };
        let kept = match serde_json::from_slice(&object.body) {
            Ok(fields) => KeptWrite::Record(fields),
            Err(_) if object.body.is_empty() => KeptWrite::Deletion,
            Err(_) => KeptWrite::Other,
        };
        match counted.last() {
            Some((next, _)) if *next != version + 1 => break,
            Some((_, KeptWrite::Record(next))) => {
                if let KeptWrite::Record(fields) = &kept
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
fn end(last: &Fields, next: &KeptWrite) -> TermEndReason {
    match next {
        KeptWrite::Deletion => TermEndReason::Deleted,
        KeptWrite::Other => TermEndReason::Unreadable,
        KeptWrite::Record(next) if next.has_holder() && last.session.is_some() => {
            TermEndReason::TakenOver { by: next.holder_identity.clone() }
        }
        KeptWrite::Record(next) if next.has_holder() => {
            TermEndReason::Expired { by: Some(next.holder_identity.clone()) }
        }
        KeptWrite::Record(next) => match (&next.preferred_holder, last.writer().zip(next.writer())) {
            (Some(to), _) => TermEndReason::Transferred { to: to.clone() },
            (None, Some((holder, releaser))) if holder != releaser => TermEndReason::Emptied,
            (None, _) => TermEndReason::Released,
        },
    }
}

#[cfg(test)]
mod tests {
    use leaderelection::implement::Version;

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
                (
                    term.holder,
                    term.fencing_token.map(u64::from).unwrap_or_default(),
                    term.ended.map(|why| why.to_string()).unwrap_or_default(),
                )
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
    fn a_creation_committed_late_is_not_a_term() {
        let gap = [record(2, "stalled", 1, ""), record(5, "a", 0, ""), record(6, "a", 0, "")];
        assert_eq!(ends(&gap), expected(&[("a", 0, "")]));
        let same_token = [record(4, "stalled", 1, ""), record(5, "a", 1, "")];
        assert_eq!(ends(&same_token), expected(&[("a", 1, "")]));
        let larger_token = [record(4, "stalled", 2, ""), record(5, "a", 1, "")];
        assert_eq!(ends(&larger_token), expected(&[("a", 1, "")]));
    }
}
