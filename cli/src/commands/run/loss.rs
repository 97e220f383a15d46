//! The texts for the end of leadership. The last line of `run`, which cron mails, says why and what to do.

use std::fmt;

use leaderelection::handle::{Change, Transition};
use leaderelection::{FencingToken, LeaderHandle, TermEndReason};

use crate::cause;

/// The end of a term that this process did not ask for.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    transition: Transition,
    identity: String,
}

impl Loss {
    /// Finds the end of the term with this token, which was the last one; `None` if the term continues, or if this
    /// process ended it.
    pub(super) fn find(handles: &[LeaderHandle], token: FencingToken) -> Option<Self> {
        let ends = handles.iter().flat_map(|handle| {
            let ends = handle.transitions().into_iter().filter(move |transition| is_end(transition, token));
            ends.map(|transition| Self { transition, identity: handle.identity().to_owned() })
        });
        ends.max_by_key(|end| end.transition.at)
            .filter(|end| !matches!(end.reason(), None | Some(TermEndReason::SteppedDown)))
    }

    /// The name of the reason, for programs.
    pub(super) fn name(&self) -> &str {
        self.reason().map_or("unknown", TermEndReason::name)
    }

    fn reason(&self) -> Option<&TermEndReason> {
        match &self.transition.change {
            Change::StoppedLeading { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// Says that leadership `of` something `is` or `was` lost, and why.
    pub(super) fn words(&self, of: impl fmt::Display, is: &str) -> String {
        if let Some(TermEndReason::Transferred { to }) = self.reason() {
            let asked = "as requested by `leaderelect transfer` or a candidate with --failback";
            return format!("leadership{of} {is} handed over to {to:?}, {asked}");
        }
        let why = cause::end_of_term(&self.transition).unwrap_or_default();
        let advice = self.reason().and_then(|reason| cause::advice(reason, &self.identity));
        let advice = advice.map(|advice| format!("; {advice}")).unwrap_or_default();
        format!("leadership{of} {is} lost: {why}{advice}")
    }
}

fn is_end(transition: &Transition, token: FencingToken) -> bool {
    matches!(&transition.change, Change::StoppedLeading { fencing_token, .. } if *fencing_token == token)
}
