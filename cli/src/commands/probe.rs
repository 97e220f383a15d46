//! `leaderelect probe`.

mod clock_offset;
mod cost;
mod latency;

use std::io::Write as _;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use leaderelection::{LeaderCallbacks, LeaderElectionConfig};
use leaderelection_conformance::{Check, ProbeConfig, ProbeReport, StoreKind, Verdict, probe, probe_create_only};
use serde_json::{Value, json};

use self::clock_offset::ClockOffset;
use self::cost::Cost;
use self::latency::Latencies;
use crate::args::timing::{Timing, duration};
use crate::exit::{Exit, Failure};
use crate::lock::OperatorLock;
use crate::output::{BOLD, Format, Output};

/// Find out whether a store is fit to elect leaders on
///
/// Any lock in the store will do, such as s3://bucket/locks/scheduler; it need not exist.
///
/// The probe creates objects twice, updates them with stale versions, and lets many writers race: exactly one
/// may win. The probe writes beside the lock, in a folder leaderelection-probe/, and deletes its objects
/// afterwards. The exit code is 0 if the store is fit, 1 if the store is not fit, and 69 if errors or missing
/// answers leave that open.
///
/// The report names the kind of the store: full; create only, which needs a sequenced lock with one object per
/// write; or neither.
///
/// The probe also measures the duration of requests and the difference between the clocks, and computes the
/// cost of the election in requests.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    lock: OperatorLock,
    /// The largest number of writers that race for one object; most races are narrower
    #[arg(long, value_name = "NUMBER", default_value_t = 64, value_parser = clap::value_parser!(u16).range(2..=256))]
    writers: u16,
    /// The number of times that all races are run; the more races, the rarer the fault that they find
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// The longest time for all checks together
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    time_limit: Duration,
    /// The format of the report
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
    #[command(flatten)]
    timing: Timing,
    #[command(flatten)]
    cost: cost::CostArgs,
}

const EXAMPLES: &str = "\
Examples:
  A store that is to be trusted for long:
    leaderelect probe --rounds 20 --time-limit 10m s3://bucket/locks/scheduler
  The cost of another lease:
    leaderelect probe --lease 1m s3://bucket/locks/scheduler";

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let lock = args.lock.open_to_look().await?;
    let timings = args.timing.timings()?;
    LeaderElectionConfig::builder(lock.clone(), LeaderCallbacks::new()).timings(timings).build()?;
    args.lock.must_have_directory()?;
    output.progress(format_args!("probing {}", args.lock));
    let config = ProbeConfig::new()
        .beside(lock.key())
        .writers(args.writers.into())
        .rounds(args.rounds.into())
        .request_timeout(timings.request_timeout())
        .time_limit(args.time_limit);
    let report = match args.lock.location().create_only()? {
        Some(objects) => probe_create_only(objects, &config).await,
        None => probe(lock.store().clone(), &config).await,
    };
    let (latencies, clock) = if report.verdict() == Verdict::Inconclusive {
        (None, None)
    } else {
        output.progress("measuring how long requests take, and how far the clocks are apart");
        let latencies = Latencies::measure(&lock, timings.request_timeout()).await;
        (latencies, Some(ClockOffset::measure(args.lock.location(), timings.request_timeout()).await))
    };
    output.done();
    let cost = Cost::of(&timings, &args.cost, args.lock.location());
    match args.output {
        Format::Json => output.json(&as_json(&args, &report, latencies.as_ref(), clock.as_ref(), &cost))?,
        Format::Text => print(&args, &report, latencies.as_ref(), clock.as_ref(), &cost, output)?,
    }
    Ok(match report.verdict() {
        Verdict::Fit => Exit::Done,
        Verdict::Unfit | Verdict::Unusable => Exit::Unfit,
        _ => Exit::Unavailable,
    })
}

fn print(
    args: &Args,
    report: &ProbeReport,
    latencies: Option<&Latencies>,
    clock: Option<&ClockOffset>,
    cost: &Cost,
    output: &Output,
) -> Result<(), Failure> {
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
        // The time limit ends the probe even if the store is not to blame.
        Verdict::Inconclusive if report.duration() >= args.time_limit => format!(
            "inconclusive: the checks did not finish within {}; give them a longer --time-limit",
            humantime::format_duration(args.time_limit)
        ),
        _ => verdict.to_owned(),
    };
    writeln!(out, "{BOLD}{}{BOLD:#} is {style}{verdict}{style:#}\n{rest}", args.lock)?;
    if let Some(latencies) = latencies {
        writeln!(out, "one at a time: {latencies}")?;
    }
    if let Some(clock) = clock {
        writeln!(out, "clock: {clock}")?;
    }
    writeln!(out, "cost: {cost}")?;
    Ok(out.flush()?)
}

fn as_json(
    args: &Args,
    report: &ProbeReport,
    latencies: Option<&Latencies>,
    clock: Option<&ClockOffset>,
    cost: &Cost,
) -> Value {
    let check = |check: &Check| {
        json!({
            "check": check.kind().to_string(),
            "required": check.kind().is_required(),
            "outcome": check.outcome().to_string().to_lowercase(),
            "detail": check.detail(),
        })
    };
    json!({
        "lock": args.lock.to_string(),
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
        "latencySeconds": latencies.map(Latencies::as_json),
        "clock": clock.map(ClockOffset::as_json),
        "monthlyCost": cost.as_json(),
    })
}
