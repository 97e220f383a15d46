//! `leaderelect transfer`.

use std::io::Write as _;
use std::time::Duration;

use leaderelection::FencingToken;
use leaderelection::admin::{AdminError, HoldingSession};

use crate::args::timing::duration;
use crate::commands::intervene::confirm::Confirmation;
use crate::commands::intervene::{self, SCAN_INTERVAL};
use crate::exit::{Exit, Failure};
use crate::lock::{LockUrl, OperatorLock};
use crate::output::escape::escape;
use crate::output::{Format, Output};
use crate::survey::observe::Observer;
use crate::survey::{Row, Scanner};

/// Hand leadership over to a named candidate
///
///     leaderelect transfer --to node-2 s3://bucket/locks/scheduler
///
/// The leader sees the request at its next renewal, finishes its work and releases
/// the lease. The named candidate takes over at once; if it does not, the others
/// compete after one lease duration. The command returns once the request is
/// written: `leaderelect watch` shows the result. --wait and --wait-for wait for
/// it, and say who leads.
///
/// The store has no list of candidates, so the command cannot check the name. It
/// warns if sessions compete for the lock, but none has the name. With a wrong
/// name, the leader stops, nobody leads for one lease duration, and then any
/// candidate may lead, even the old leader. Without --yes, the command warns and
/// asks. Copy the name from the candidate's log or status page.
///
/// A leader in a session sees the request at its next scan of its locks, at
/// most 30 seconds later unless its program sets another scan_interval, and keeps
/// its other locks. A session itself cannot be transferred. A leader that runs
/// client-go or another library does not read such requests: the command refuses.
#[derive(Debug, clap::Args)]
#[command(override_usage = "leaderelect transfer [OPTIONS] --to <IDENTITY> <URL>")]
#[command(verbatim_doc_comment, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    lock: OperatorLock,
    /// Name the candidate that should lead next
    #[arg(long, value_name = "IDENTITY")]
    to: String,
    /// Wait until the named candidate leads
    ///
    /// Also returns if another candidate leads instead.
    #[arg(long, conflicts_with = "wait_for")]
    wait: bool,
    /// Wait like --wait, but at most this long
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    wait_for: Option<Duration>,
    #[command(flatten)]
    confirmation: Confirmation,
    /// Print the change as text or json
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

const EXAMPLES: &str = "\
Examples:
  Before maintenance, with the name that the candidate logged at its start:
    leaderelect transfer --to node-2 --wait-for 1m s3://bucket/locks/scheduler";

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let target = args.lock.target(None).await?;
    let seen = intervene::read(&args.lock, &target).await?;
    if target.session_id(&seen.record).is_some() {
        return Err(AdminError::IsSession { session: args.lock.to_string() }.into());
    }
    if let Some(holder) = seen.foreign_holder() {
        return Err(Failure::usage(format!(
            "{holder:?} runs client-go or another library (its record has no writeId), which cannot hand over on request; \
             stop that process, and {:?} may take over",
            args.to
        )));
    }
    let lease = humantime::format_duration(seen.lease());
    if let Some(session) = &seen.observed.session
        && !candidates(&args.lock, session).await?.contains(&args.to)
    {
        output.say(format_args!("{}: no open session has the identity {:?}; check the name", args.lock, args.to));
    }
    let risk = format!("If no candidate has this name, nobody leads for one lease duration (now {lease}).");
    let through = seen.session().map(|id| format!(" through the session {id}")).unwrap_or_default();
    let question = match seen.observed.holder() {
        None => format!("Nobody leads {}. Let {:?} go first? {risk}", args.lock, args.to),
        Some(holder) => format!(
            "{holder:?} leads {}{through}. Ask it to stop its work and hand over to {:?}? {risk}",
            args.lock, args.to
        ),
    };
    if !args.confirmation.of(&question, output)? {
        output.say("nothing was changed");
        return Ok(Exit::Held);
    }
    let intervention = intervene::within(&args.lock, target.request_transfer(&seen.record, &args.to)).await?;
    let next = if intervention.after.is_released() || seen.observed.holder().is_none() {
        format!("if {:?} competes, it takes over at its next poll; the others wait for one lease duration", args.to)
    } else if intervention.after.holder_identity == args.to {
        format!("{:?} has taken over already", args.to)
    } else if seen.session().is_some() {
        format!(
            "the leader hands over at its next scan, at most {SCAN_INTERVAL} later unless its program sets another scan_interval"
        )
    } else {
        "the leader hands over at its next renewal".to_owned()
    };
    let patience = args.wait_for.or_else(|| args.wait.then_some(Duration::MAX));
    let next = if patience.is_some() { next } else { format!("{next}; `leaderelect watch` shows it") };
    intervene::print(&args.lock, &seen, &intervention, &next, args.output, output)?;
    match patience {
        Some(patience) => taken_over(&args, seen.record.leader_transitions.into(), patience, output).await,
        None => {
            output.say(format_args!(
                "it is unknown whether {:?} competes; use --wait-for to wait until it takes over",
                args.to
            ));
            Ok(Exit::Done)
        }
    }
}

/// The identities of the open sessions beside the one that holds the lock.
async fn candidates(lock: &LockUrl, session: &HoldingSession) -> Result<Vec<String>, Failure> {
    let folder = session.target.key().trim_end_matches(session.id.as_str());
    let mut survey = Scanner::open(lock.folder(folder), PATIENCE).await?;
    survey.scan(|_, _| {}).await?;
    Ok(survey.sessions().into_iter().filter_map(|session| session.holder).collect())
}

/// Waits until the named candidate leads, or another one in a term after `token`.
async fn taken_over(args: &Args, token: FencingToken, patience: Duration, output: &Output) -> Result<Exit, Failure> {
    let mut observer = Observer::new(&args.lock, patience.min(PATIENCE), PERIOD).await?;
    output.progress(format_args!("waiting until {} leads", args.to));
    let next = async {
        loop {
            // A store that fails may recover.
            let Ok(Row { view, .. }) = observer.next().await else { continue };
            let is_next = view.fencing_token > Some(token);
            if let Some(holder) = view.holder.filter(|holder| is_next || *holder == args.to) {
                return (holder, view.fencing_token);
            }
        }
    };
    let next = tokio::time::timeout(patience, next).await;
    output.done();
    let to = &args.to;
    match next {
        Ok((next, token)) if next == *to => {
            if args.output == Format::Text {
                let token = token.map(|token| format!(" (fencing token {token})")).unwrap_or_default();
                let mut out = output.stdout();
                writeln!(out, "{}", escape(format_args!("{to} leads now{token}")))?;
                out.flush()?;
            }
            Ok(Exit::Done)
        }
        Ok((next, _)) => {
            let problem = format!("{next:?} took over instead of {to:?}; check the name, and that {to:?} competes");
            Err(Failure::new(Exit::Held, problem))
        }
        Err(_) => {
            let patience = humantime::format_duration(patience);
            let problem = format!("{to:?} did not take over within {patience}; check its name, and that it competes");
            Err(Failure::new(Exit::Held, problem))
        }
    }
}

/// The longest time for one request.
const PATIENCE: Duration = Duration::from_secs(10);

/// The interval between two reads of the lock.
const PERIOD: Duration = Duration::from_millis(500);
