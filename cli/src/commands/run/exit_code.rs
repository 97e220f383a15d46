//! The exit code of `leaderelect run`.

use std::time::Duration;

use leaderelection::TermEndReason;
use leaderelection::lock::JobId;

use super::first_read;
use super::slots::TermEnd;
use super::state::{Ended, TOO_LONG};
use super::watch::GivenUp;
use super::work::Job;
use crate::exit::{Exit, Failure};
use crate::lock::CandidateLock;

/// The options on which the exit code depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options<'a> {
    pub(super) lock: &'a CandidateLock,
    pub(super) job_id: Option<&'a JobId>,
    pub(super) is_campaign: bool,
    pub(super) max_runtime: Option<Duration>,
    pub(super) patience: Option<Duration>,
}

/// Converts the end of the last term into the exit code of this process.
pub(super) fn after(options: Options<'_>, job: &Job, end: TermEnd, given_up: Option<GivenUp>) -> Result<Exit, Failure> {
    let reason = end.map_err(|unfit| Failure::new(Exit::Unfit, unfit.to_string()))?.unwrap_or(TermEndReason::Cancelled);
    let lost = |then: std::fmt::Arguments<'_>| {
        let why = job.state.loss().map(|loss| loss.words(format_args!(" of {}", options.lock), "was"));
        let why = why.unwrap_or_else(|| match reason {
            // Nothing else happened to the term.
            TermEndReason::SteppedDown => format!(
                "leadership of {} was lost: starting the command took longer than --renew-deadline; check this machine for a \
                 lack of CPU time",
                options.lock
            ),
            ref reason => format!("leadership of {} was lost: {reason}", options.lock),
        });
        Err(Failure::new(Exit::Lost, format!("{why}{then}")))
    };
    match (job.state.take_end(), given_up) {
        // The command of an earlier term does not decide the exit code.
        (_, Some(GivenUp::Signal(signal))) if options.is_campaign && !job.state.is_finishing() => {
            Ok(Exit::by_signal(signal.as_raw()))
        }
        (Some(Ended::NotStarted(failure)), _) => Err(failure),
        (Some(ended @ Ended::ByItself(exit)), given_up) => match options.job_id {
            // cron mails what is written. A failure without a line would be no mail.
            Some(name) if exit.code() != 0 && given_up.is_none() => {
                let message = format!(
                    "job {name} of {} failed: the command ended with {ended}; it is not recorded as done, so the next host that leads \
                     runs it",
                    options.lock
                );
                Err(Failure::new(exit, message))
            }
            _ => Ok(exit),
        },
        (Some(Ended::TooLong), _) => {
            let longest = humantime::format_duration(options.max_runtime.unwrap_or_default());
            let message = format!("the command was stopped: it ran longer than --max-runtime {longest}");
            Err(Failure::new(TOO_LONG, message))
        }
        (Some(Ended::Lost { how }), _) => lost(format_args!("; the command {how}")),
        (None, Some(GivenUp::Signal(signal))) => Ok(Exit::by_signal(signal.as_raw())),
        (None, Some(GivenUp::Held(held))) => Err(first_read::held(&held, options.lock)),
        (None, Some(GivenUp::Refused(failure))) => Err(failure),
        (None, Some(GivenUp::TimedOut)) => {
            let patience = humantime::format_duration(options.patience.unwrap_or_default());
            let message = format!(
                "{}: timed out after {patience} without leadership; `leaderelect status` shows who leads",
                options.lock
            );
            Err(Failure::new(Exit::Held, message))
        }
        (None, None) => lost(format_args!("; the lock is no longer held")),
    }
}
