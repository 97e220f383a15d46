//! `leaderelect probe`.

mod clock_offset;
mod cost;
mod junit;
mod latency;
mod proposal;

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::implement::ConditionalStore;
use leaderelection::{LeaderCallbacks, LeaderElectionConfig, Timings};
use leaderelection_conformance::{
    Check, Endpoints, ProbeConfig, ProbeReport, StoreKind, Verdict, measure, probe, probe_create_only,
};
use serde_json::{Value, json};

use self::clock_offset::ClockOffset;
use self::cost::Cost;
use self::latency::Measured;
use self::proposal::{Proposed, WishArgs};
use crate::args::timing::{Timing, duration};
use crate::exit::{Exit, Failure};
use crate::lock::{Joined, Lock, LockUrl, OperatorLock};
use crate::output::{BOLD, Format, Output};

/// Check whether a store is fit for leader election
///
///     leaderelect probe s3://bucket/locks/scheduler
///
/// Name any lock in the store; it need not exist. The probe creates objects twice,
/// updates them with stale versions, and lets many writers race: exactly one may
/// win. It writes beside the lock, in a folder leaderelection-probe/, and deletes
/// its objects afterwards.
///
/// The exit code is 0 if the store is fit, 1 if it is not, and 69 if errors or
/// missing answers leave that open. The report names the kind of the store, by its
/// conditional writes: `full` (creates and updates), `create only` (no updates; it
/// needs a sequenced lock, with one object per write), or `neither`.
///
/// The probe also measures request latency and clock offset, and computes the cost
/// of the election in requests. With --failover or --budget, it proposes timings.
/// The exit code is 1 if the store is too slow for them.
///
/// If --lock is given several times, each store is probed separately, and the exit
/// code is the worst of them. Every store must be fit: with one that ignores
/// conditions, two leaders are possible.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    lock: OperatorLock,
    /// Add an endpoint of the same store
    ///
    /// The URL of the same object there. Requests are spread over all endpoints. Repeatable.
    #[arg(long, value_name = "URL", value_parser = LockUrl::shared_parser())]
    endpoint: Vec<LockUrl>,
    /// Race up to this many writers
    ///
    /// Writers race to write one object; only the largest races have this many.
    #[arg(long, value_name = "NUMBER", default_value_t = 64, value_parser = clap::value_parser!(u16).range(2..=256))]
    writers: u16,
    /// Run all races this many times
    ///
    /// More rounds find rarer faults.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Limit all checks to this time
    ///
    /// To delete its objects, the probe may take 10 seconds more.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    time_limit: Duration,
    /// Print the report as text or json
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
    /// Write the checks to this JUnit file
    #[arg(long, value_name = "PATH")]
    junit: Option<PathBuf>,
    #[command(flatten)]
    wish: WishArgs,
    #[command(flatten)]
    timing: Timing,
    #[command(flatten)]
    cost: cost::CostArgs,
}

const EXAMPLES: &str = "\
Examples:
  Thorough, before a store goes into production:
    leaderelect probe --rounds 20 --time-limit 10m s3://bucket/locks/scheduler
  The cost of another lease duration:
    leaderelect probe --lease-duration 1m s3://bucket/locks/scheduler
  Timings for a failover of two seconds, and their price:
    leaderelect probe --failover 2s s3://locks--use1-az4--x-s3/scheduler
  Two gateways of one store:
    leaderelect probe 's3://bucket/a?endpoint=http://one:8333' \\
        --endpoint 's3://bucket/a?endpoint=http://two:8333'";

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let parts = args.lock.parts();
    if parts.len() > 1 && !args.endpoint.is_empty() {
        let message = format!("--endpoint needs exactly one --lock; found {}", parts.len());
        return Err(Failure::usage(message));
    }
    let (timings, mut opened) = (args.timing.timings()?, Vec::new());
    for part in parts {
        let lock = part.open_to_read().await?;
        LeaderElectionConfig::builder(lock.clone(), LeaderCallbacks::new()).timings(timings).build()?;
        opened.push((part, lock));
    }
    parts.iter().try_for_each(LockUrl::must_have_directory)?;
    let mut all = Vec::new();
    for (part, lock) in opened {
        let found = Found::of(part, &lock, timings, &args, output).await?;
        match args.output {
            Format::Json => output.json(&as_json(&args, &found))?,
            Format::Text => print(&args, &found, output)?,
        }
        all.push(found);
    }
    if let Some(path) = &args.junit {
        junit::write(path, all.iter().map(|found| (found.lock.to_string(), &found.report)))?;
    }
    let bad: Vec<_> = all.iter().filter(|found| found.exit() != Exit::Done).map(|found| &found.lock).collect();
    if args.output == Format::Text && parts.len() > 1 {
        let fit = format!("{} of {} locks are fit", all.len() - bad.len(), all.len());
        match bad[..] {
            [] => output.say(fit),
            _ => output.say(format_args!("{fit}; not {}", Joined(&bad[..]))),
        }
    }
    let exits = || all.iter().map(Found::exit);
    let worst = [Exit::Unfit, Exit::Unavailable].into_iter().find(|exit| exits().any(|other| other == *exit));
    Ok(worst.unwrap_or(Exit::Done))
}

/// All that the command finds out about one lock.
struct Found {
    lock: LockUrl,
    report: ProbeReport,
    measured: Option<Measured>,
    clock: Option<ClockOffset>,
    proposed: Option<Proposed>,
    cost: Cost,
}

impl Found {
    async fn of(url: &LockUrl, lock: &Lock, timings: Timings, args: &Args, output: &Output) -> Result<Self, Failure> {
        output.progress(format_args!("probing {url}"));
        let config = ProbeConfig::new()
            .beside(lock.key())
            .writers(args.writers.into())
            .rounds(args.rounds.into())
            .request_timeout(timings.request_timeout())
            .time_limit(args.time_limit);
        let store = args.store(url, lock).await?;
        let report = match url.location().create_only()? {
            Some(objects) if args.endpoint.is_empty() => probe_create_only(objects, &config).await,
            _ => probe(Arc::clone(&store), &config).await,
        };
        let cost = Cost::of(&timings, &args.cost, url.location());
        let mut found = Self { lock: url.clone(), report, measured: None, clock: None, proposed: None, cost };
        if found.report.verdict() != Verdict::Inconclusive {
            output.progress("measuring request latency and clock offset");
            found.measured = args.measure(lock, &store, &config).await;
            found.clock = Some(ClockOffset::measure(url.location(), timings.request_timeout()).await);
            let latencies = found.measured.as_ref().map(|measured| &measured.latencies);
            let costs = (&args.cost, url.location());
            found.proposed = Proposed::of(&args.wish, latencies, store.min_write_interval(), costs);
        }
        output.done();
        Ok(found)
    }

    fn exit(&self) -> Exit {
        match self.report.verdict() {
            Verdict::Fit if self.proposed.as_ref().is_some_and(|proposed| !proposed.is_made()) => Exit::Unfit,
            Verdict::Fit => Exit::Done,
            Verdict::Unfit | Verdict::Unusable => Exit::Unfit,
            _ => Exit::Unavailable,
        }
    }
}

impl Args {
    /// The store behind all endpoints.
    async fn store(&self, first: &LockUrl, lock: &Lock) -> Result<Arc<dyn ConditionalStore>, Failure> {
        let mut others = Vec::new();
        for url in &self.endpoint {
            if url.location().key() != first.location().key() {
                return Err(Failure::usage(format!(
                    "--endpoint {url} names another object than {first}; use the same bucket and key"
                )));
            }
            others.push(Arc::clone(url.open_to_read().await?.store()));
        }
        if others.is_empty() {
            return Ok(Arc::clone(lock.store()));
        }
        Ok(Arc::new(Endpoints::new(Arc::clone(lock.store()), others)))
    }

    async fn measure(&self, lock: &Lock, store: &Arc<dyn ConditionalStore>, config: &ProbeConfig) -> Option<Measured> {
        let request_timeout = self.timing.timings().ok()?.request_timeout();
        if !self.wish.is_given() {
            return Measured::reads(lock, request_timeout).await;
        }
        let measured = measure(Arc::clone(store), config, self.wish.requests as usize).await?;
        Some(Measured { latencies: measured.latencies, request_timeout, requests: "writes and reads" })
    }
}

fn print(args: &Args, found: &Found, output: &Output) -> Result<(), Failure> {
    let Found { lock, report, measured, clock, proposed, cost } = found;
    let mut out = output.stdout();
    let colour = match report.verdict() {
        Verdict::Fit => AnsiColor::Green,
        Verdict::Unfit | Verdict::Unusable => AnsiColor::Red,
        _ => AnsiColor::Yellow,
    };
    let style = Style::new().bold().fg_color(Some(colour.into()));
    let text = report.to_string();
    let (verdict, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let verdict = match report.verdict() {
        Verdict::Inconclusive if report.is_out_of_time() => out_of_time(report, args.time_limit),
        _ => verdict.to_owned(),
    };
    writeln!(out, "{BOLD}{lock}{BOLD:#} is {style}{verdict}{style:#}\n{rest}")?;
    if let Some(measured) = measured {
        writeln!(out, "one at a time: {measured}")?;
    }
    if let Some(clock) = clock {
        writeln!(out, "clock: {clock}")?;
    }
    writeln!(out, "cost: {cost}")?;
    if let Some(proposed) = proposed {
        writeln!(out, "proposal: {proposed}")?;
    }
    Ok(out.flush()?)
}

/// The verdict after the time limit, which may end the checks of a good store, too.
fn out_of_time(report: &ProbeReport, limit: Duration) -> String {
    let limit = humantime::format_duration(limit);
    match (report.last_error(), report.latency()) {
        (Some(error), _) => {
            format!("inconclusive: the checks timed out after {limit}, and the last request failed: {error}")
        }
        (None, None) => format!(
            "inconclusive: the checks timed out after {limit}, and the store answered no request; check the URL and the \
             network, or set a longer --time-limit"
        ),
        (None, Some(_)) => format!("inconclusive: the checks timed out after {limit}; set a longer --time-limit"),
    }
}

/// The verdict in the form that docs/stores.md describes.
fn as_json(args: &Args, found: &Found) -> Value {
    let Found { lock, report, measured, clock, proposed, cost } = found;
    let check = |check: &Check| {
        json!({
            "check": check.kind().to_string(),
            "required": check.kind().is_required(),
            "outcome": check.outcome().to_string().to_lowercase(),
            "detail": check.detail(),
        })
    };
    json!({
        "date": SystemClock.wall_time().date_naive().to_string(),
        "version": env!("CARGO_PKG_VERSION"),
        "lock": lock.to_string(),
        "also": args.endpoint.iter().map(LockUrl::to_string).collect::<Vec<_>>(),
        "place": report.place(),
        "verdict": match report.verdict() {
            Verdict::Fit => "fit",
            Verdict::Unfit => "unfit",
            Verdict::Unusable => "unusable",
            _ => "inconclusive",
        },
        "kind": match report.kind() {
            StoreKind::Full => "full",
            StoreKind::CreateOnly => "createOnly",
            StoreKind::Neither => "neither",
            _ => "unknown",
        },
        "checks": report.checks().iter().map(check).collect::<Vec<_>>(),
        "requests": report.requests(),
        "seconds": report.duration().as_secs_f64(),
        "leftovers": report.leftovers(),
        "racingLatencySeconds": report.latency().map(|latency| json!({
            "min": latency.min.as_secs_f64(),
            "p50": latency.median.as_secs_f64(),
            "p99": latency.p99.as_secs_f64(),
        })),
        "latencySeconds": measured.as_ref().map(Measured::as_json),
        "clock": clock.as_ref().map(ClockOffset::as_json),
        "monthlyCost": cost.as_json(),
        "proposal": proposed.as_ref().map(Proposed::as_json),
    })
}
