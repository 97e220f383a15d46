//! Timings for a wish, from the measured latencies and the prices of the store.

use std::fmt;
use std::time::Duration;

use leaderelection::timings::{Goal, Latencies, Proposal, StoreLimits};
use leaderelection_backends::url::Location;
use serde_json::{Value, json};

use super::cost::{Cost, CostArgs, price};
use crate::args::timing::duration;

/// The wish for which timings are proposed.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Proposal")]
pub(super) struct WishArgs {
    /// Propose timings for a failover in this time
    ///
    /// Another candidate leads at most this long after a crash.
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "budget")]
    failover: Option<Duration>,
    /// Propose timings for this monthly budget
    ///
    /// The fastest timings whose requests cost at most this many US dollars a month.
    #[arg(long, value_name = "DOLLARS", value_parser = price)]
    budget: Option<f64>,
    /// Measure this many requests
    ///
    /// A proposal is based on this many writes and this many reads; more requests find rarer delays.
    #[arg(long, value_name = "NUMBER", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(30..=1_000_000))]
    pub(super) requests: u32,
}

impl WishArgs {
    /// Returns `true` if timings are to be proposed.
    pub(super) fn is_given(&self) -> bool {
        self.failover.is_some() || self.budget.is_some()
    }
}

/// A proposal and its price, or the reason why there is none.
#[derive(Debug)]
pub(super) struct Proposed(Result<(Proposal, Cost), String>);

impl Proposed {
    /// Returns the proposal for the wish in `args`; `None` if there is none.
    pub(super) fn of(
        args: &WishArgs,
        latencies: Option<&Latencies>,
        write_interval: Option<Duration>,
        (costs, location): (&CostArgs, &Location),
    ) -> Option<Self> {
        let wish = match (args.failover, args.budget) {
            (Some(failover), _) => Ok(Goal::Failover(failover)),
            (None, Some(budget)) => Cost::retry_period_for(budget, costs, location).map(Goal::RetryPeriod),
            (None, None) => return None,
        };
        let limits = StoreLimits { write_interval, ..StoreLimits::default() };
        let latencies = latencies.ok_or_else(|| "no timings: no request succeeded".to_owned());
        Some(Self(
            wish.and_then(|wish| Proposal::new(wish, latencies?, limits).map_err(|error| error.to_string())).map(
                |proposal| {
                    let cost = Cost::of(&proposal.timings, costs, location);
                    (proposal, cost)
                },
            ),
        ))
    }

    /// Returns `true` if there is a proposal.
    pub(super) fn is_made(&self) -> bool {
        self.0.is_ok()
    }

    pub(super) fn as_json(&self) -> Value {
        let (proposal, cost) = match &self.0 {
            Ok(proposed) => proposed,
            Err(why) => return json!({ "refused": why }),
        };
        json!({
            "timings": proposal.timings,
            "failoverSeconds": proposal.failover.as_secs_f64(),
            "p999Seconds": proposal.slow.as_secs_f64(),
            "survivesUnanswered": proposal.survives,
            "lossesAYear": proposal.losses_a_year,
            "monthlyCost": cost.as_json(),
        })
    }
}

impl fmt::Display for Proposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Proposal { timings, failover, slow, survives, losses_a_year, .. }, cost) = match &self.0 {
            Ok(proposed) => proposed,
            Err(why) => return f.write_str(why),
        };
        let [lease, renew, retry, timeout] =
            [timings.lease_duration(), timings.renew_deadline(), timings.retry_period(), timings.request_timeout()]
                .map(|duration| humantime::format_duration(duration).to_string().replace(' ', ""));
        writeln!(
            f,
            "--lease-duration {lease} --renew-deadline {renew} --retry-period {retry} --request-timeout {timeout}"
        )?;
        writeln!(
            f,
            "  another candidate leads at most {failover:.2?} after a crash; 1 in 1000 requests takes {slow:.1?} or more"
        )?;
        writeln!(
            f,
            "  a term survives {survives} unanswered requests in a row; expect {losses_a_year:.2} lost terms a year, not counting outages"
        )?;
        write!(f, "  {cost}")
    }
}
