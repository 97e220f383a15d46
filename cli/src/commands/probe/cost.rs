//! The cost of an election in requests.

use std::fmt;
use std::time::Duration;

use leaderelection::Timings;
use leaderelection::timings::JITTER_FACTOR;
use leaderelection_backends::prices::{MONTH, Prices};
use leaderelection_backends::url::Location;
use serde_json::{Value, json};

/// The arguments from which the cost is computed.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Cost")]
pub(super) struct CostArgs {
    /// Count this many followers
    ///
    /// The number of candidates that do not lead.
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    followers: u32,
    /// Set the price of a million writes
    ///
    /// In US dollars. The default is the store's list price.
    #[arg(long, value_name = "PRICE", value_parser = price)]
    write_price: Option<f64>,
    /// Set the price of a million reads
    ///
    /// In US dollars. The default is the store's list price.
    #[arg(long, value_name = "PRICE", value_parser = price)]
    read_price: Option<f64>,
    /// Assume that the leader informs followers
    ///
    /// Followers with --peer-listen learn of renewals over HTTP, and seldom read the store.
    #[arg(long)]
    peers: bool,
}

/// The time between the reads of a follower that gets messages from its leader.
const INFREQUENT: Duration = Duration::from_secs(30);

/// Parses a price in US dollars.
pub(super) fn price(text: &str) -> Result<f64, String> {
    let price = text.parse().ok().filter(|price: &f64| price.is_finite() && *price >= 0.0);
    price.ok_or_else(|| "expected a number of US dollars, such as 5 or 0.4".to_owned())
}

/// The cost of one election per month.
#[derive(Debug)]
pub(super) struct Cost {
    followers: u32,
    retry: Duration,
    writes: f64,
    reads: f64,
    /// The listings and the removals of a lock with one object per write; zero for every other lock.
    listings: f64,
    removals: f64,
    /// The prices of a million writes and a million reads.
    prices: Option<(f64, f64)>,
    source: String,
}

impl Cost {
    pub(super) fn of(timings: &Timings, args: &CostArgs, location: &Location) -> Self {
        let listed = Prices::of(location);
        let price = |given: Option<f64>, listed: Option<f64>| given.or(listed).or(is_local(location).then_some(0.0));
        let write_price = price(args.write_price, listed.map(|listed| listed.writes));
        let read_price = price(args.read_price, listed.map(|listed| listed.reads));
        let source = match (listed, args.write_price.or(args.read_price)) {
            (_, Some(_)) => "at the given prices".to_owned(),
            (Some(Prices { as_of, service, source, .. }), None) => {
                format!("at list prices of {as_of} ({service}; {source})")
            }
            (None, None) if is_local(location) => "because the store is on this machine".to_owned(),
            (None, None) => "no list price is known; set --write-price and --read-price".to_owned(),
        };
        let retry = timings.retry_period();
        let rounds = MONTH.as_secs_f64() / retry.as_secs_f64();
        // A candidate waits a retry period and, on average, half of the jitter in addition.
        let rest = 1.0 + JITTER_FACTOR / 2.0;
        let followers = f64::from(args.followers);
        let polls = if args.peers {
            followers * MONTH.as_secs_f64() / INFREQUENT.as_secs_f64()
        } else {
            followers * rounds / rest
        };
        let is_sequenced = location.is_sequenced();
        Self {
            followers: args.followers,
            retry,
            writes: rounds,
            // A poll of a sequenced lock reads each new object, and the number after the last.
            reads: if is_sequenced { polls * (rest + 1.0) } else { polls },
            listings: if is_sequenced { rounds + polls } else { 0.0 },
            removals: if is_sequenced { rounds } else { 0.0 },
            prices: write_price.zip(read_price),
            source,
        }
    }

    /// Returns the retry period at which a month costs `budget` dollars.
    pub(super) fn retry_period_for(budget: f64, args: &CostArgs, location: &Location) -> Result<Duration, String> {
        let retry = Timings::default().retry_period();
        let dollars = |args| Self::of(&Timings::default(), args, location).dollars();
        let unknown =
            || "no timings for a budget: no list price is known; set --write-price and --read-price".to_owned();
        let all = dollars(args).ok_or_else(unknown)?;
        // The reads of followers that get messages from their leader do not depend on the retry period.
        let alone = dollars(&CostArgs { followers: 0, ..args.clone() }).ok_or_else(unknown)?;
        let fixed = if args.peers { all - alone } else { 0.0 };
        if budget <= fixed && all > 0.0 {
            return Err(format!("no timings for ${budget} a month: the reads of the followers alone cost ${fixed:.2}"));
        }
        let period = if all > 0.0 { retry.as_secs_f64() * (all - fixed) / (budget - fixed) } else { 0.0 };
        Ok(Duration::try_from_secs_f64((period * 1000.0).ceil() / 1000.0).unwrap_or(Duration::MAX))
    }

    fn dollars(&self) -> Option<f64> {
        // Stores charge for a listing as for a write, and for a removal nothing.
        self.prices.map(|(write, read)| ((self.writes + self.listings) * write + self.reads * read) / 1e6)
    }

    pub(super) fn as_json(&self) -> Value {
        json!({
            "retryPeriodSeconds": self.retry.as_secs_f64(),
            "followers": self.followers,
            "writes": self.writes.round(),
            "reads": self.reads.round(),
            "listings": self.listings.round(),
            "removals": self.removals.round(),
            "dollars": self.dollars().map(|dollars| (dollars * 100.0).round() / 100.0),
            "prices": self.source,
        })
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { followers, writes, reads, source, .. } = self;
        let (writes, reads) = (writes / 1e6, reads / 1e6);
        let retry = humantime::format_duration(self.retry);
        write!(
            f,
            "with --retry-period {retry} and {followers} followers: {writes:.2} million writes and {reads:.2} million reads a month"
        )?;
        if self.listings > 0.0 {
            let (listings, removals) = (self.listings / 1e6, self.removals / 1e6);
            write!(f, ", {listings:.2} million listings at the price of writes, {removals:.2} million removals")?;
        }
        f.write_str(": ")?;
        match self.dollars() {
            Some(dollars) => write!(f, "${dollars:.2} {source}"),
            None => f.write_str(source),
        }
    }
}

/// Returns `true` if requests to this store cost nothing.
fn is_local(location: &Location) -> bool {
    match location {
        #[cfg(unix)]
        Location::File(_) | Location::SequencedFile(_) => true,
        Location::Memory(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::timing::Timing;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        timing: Timing,
        #[command(flatten)]
        cost: CostArgs,
    }

    fn cost(args: &[&str], url: &str) -> String {
        let line = Line::parse_from([&["probe"], args].concat());
        Cost::of(&line.timing.timings().unwrap(), &line.cost, &url.parse().unwrap()).to_string()
    }

    #[test]
    fn a_month_of_the_defaults() {
        // 2,629,746 s / 2 s = 1.31 million writes; 2 followers at 3.2 s each: 1.64 million reads.
        let text = cost(&["--write-price", "5", "--read-price", "0.4"], "memory:a");
        let expected =
            "with --retry-period 2s and 2 followers: 1.31 million writes and 1.64 million reads a month: $7.23";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn a_retry_period_and_followers_count() {
        let text = cost(&["--lease-duration", "150s", "--followers", "0"], "memory:a");
        assert!(
            text.starts_with("with --retry-period 20s and 0 followers: 0.13 million writes and 0.00 million"),
            "{text}"
        );
        assert!(text.ends_with("$0.00 because the store is on this machine"), "{text}");
    }

    #[test]
    fn a_price_is_a_number_that_is_not_negative() {
        for wrong in ["NaN", "inf", "-1", "free", ""] {
            for option in ["--write-price", "--read-price"] {
                let Err(error) = Line::try_parse_from(["probe", &format!("{option}={wrong}")]) else {
                    panic!("{option} {wrong} is accepted");
                };
                assert!(error.to_string().contains("such as 5 or 0.4"), "{error}");
            }
        }
        assert!(cost(&["--write-price", "0", "--read-price", "0"], "memory:a").contains("$0.00"));
    }

    /// One creation, one listing and one removal for each renewal; one listing and 2.6 reads for each poll.
    #[cfg(unix)]
    #[test]
    fn a_sequenced_lock_costs_listings_too() {
        let text = cost(&["--write-price", "5", "--read-price", "0.4"], "sequenced+file:///a/b");
        let expected = "with --retry-period 2s and 2 followers: 1.31 million writes and 4.27 million reads a month, \
                        2.96 million listings at the price of writes, 1.31 million removals: $23.08";
        assert!(text.starts_with(expected), "{text}");
    }

    #[cfg(feature = "s3")]
    #[test]
    fn a_store_that_somebody_runs_has_no_list_price() {
        assert!(cost(&[], "s3://b/k").contains("$7.23 at list prices"));
        assert!(
            cost(&[], "s3://b/k?endpoint=http://127.0.0.1:1").contains("no list price is known; set --write-price")
        );
    }
}
