//! The last terms, as the transitions tell them.

use chrono::{DateTime, Utc};
use leaderelection::TermEndReason;
use leaderelection::handle::{Change, Transition};

use crate::history::Term;

/// The terms that this process saw, oldest first. `transitions` are in the same order.
pub(super) fn of(transitions: &[Transition], identity: &str) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    for transition in transitions {
        let Transition { at, change, .. } = transition;
        match change {
            Change::StartedLeading { fencing_token, .. } => {
                begin(&mut terms, identity, *at);
                if let Some(term) = open(&mut terms) {
                    term.fencing_token = Some(*fencing_token);
                }
            }
            Change::StoppedLeading { reason, .. } => {
                if let Some(term) = open(&mut terms).filter(|term| term.holder == identity) {
                    term.end(*at, reason.clone());
                }
            }
            // The start of a term of its own is told by itself, and comes later.
            Change::LeaderChanged { to: Some(leader), .. } if leader == identity => {}
            Change::LeaderChanged { to: Some(leader), .. } => begin(&mut terms, leader, *at),
            Change::LeaderChanged { to: None, .. } => end(&mut terms, *at, TermEndReason::Released),
            _ => {}
        }
    }
    terms
}

/// Ends the last term, if it has no end yet.
pub(super) fn end(terms: &mut [Term], at: DateTime<Utc>, reason: TermEndReason) {
    if let Some(term) = terms.last_mut() {
        term.end(at, reason);
    }
}

fn begin(terms: &mut Vec<Term>, who: &str, at: DateTime<Utc>) {
    end(terms, at, TermEndReason::TakenOver { by: who.to_owned() });
    terms.push(Term::begin(who, None, at));
}

fn open(terms: &mut [Term]) -> Option<&mut Term> {
    terms.last_mut().filter(|term| term.ended.is_none())
}

#[cfg(test)]
mod tests;
