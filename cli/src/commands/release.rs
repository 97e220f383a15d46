//! `leaderelect release`.

mod session;

use crate::commands::intervene::confirm::Confirmation;
use crate::commands::intervene::{self, LockState, SCAN_INTERVAL};
use crate::exit::{Exit, Failure};
use crate::lock::OperatorLock;
use crate::output::{Format, Output};

/// Take the lease away from a dead holder
///
///     leaderelect release --force s3://bucket/locks/scheduler
///
/// Use it for a holder that is known to be dead or stuck, if you cannot wait until
/// the lease expires. Two leaders are possible: a living holder leads until its
/// next renewal, while another candidate starts at once. For a living holder, use
/// `leaderelect transfer`. The fencing token is kept, and the next term raises it.
///
/// A holder that runs client-go or another library does not notice the release. If
/// it is alive, it takes the lease back and continues, or leads beside the next
/// leader until its own renew deadline. Stop such a process instead.
///
/// For a lock of a session, PREFIX/locks/NAME, only this lock is released; the
/// session keeps the others. A living holder leads until its next scan of its
/// locks, at most 30 seconds later unless its program sets another scan_interval.
/// Other sessions notice the release at their next scan, too.
///
/// For a session, PREFIX/sessions/ID, the session ends with all its locks. The
/// command prints these locks before it asks. A living holder leads all of them
/// until its next renewal, while other sessions take them at once. It then opens
/// another session and competes again.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    lock: OperatorLock,
    /// Accept that two leaders are possible
    ///
    /// Required. The command still asks, unless --yes is given.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    confirmation: Confirmation,
    /// Print the change as text or json
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

const EXAMPLES: &str = "\
Examples:
  From a script, for a holder that is known to be dead:
    leaderelect release --force --yes s3://bucket/locks/scheduler";

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    if !args.force {
        let message = "the holder may be alive: stop it, or use `leaderelect transfer`, or add --force if it \
                       is dead";
        return Err(Failure::usage(message));
    }
    let target = args.lock.target(None).await?;
    let seen = intervene::read(&args.lock, &target).await?;
    if let Some(id) = target.session_id(&seen.record) {
        return session::end(&args.lock, id, &seen, (args.confirmation, args.output), output).await;
    }
    if let Some(holder) = seen.foreign_holder() {
        output.say(format_args!(
            "{holder:?} runs client-go or another library (its record has no writeId): if it is alive, it takes the lease back \
             without stopping its work, or leads beside the next leader until its own renew deadline"
        ));
    }
    if let Some(holder) = seen.observed.holder()
        && !args.confirmation.of(&question(&args.lock, &seen, holder), output)?
    {
        output.say("nothing was changed");
        return Ok(Exit::Held);
    }
    let intervention = intervene::within(&args.lock, target.force_release(&seen.record)).await?;
    let next = match (intervention.after.is_released(), seen.session()) {
        (true, None) if seen.foreign_holder().is_some() => {
            "the next candidate that polls takes over; if the holder is alive, it may be the same one".to_owned()
        }
        (true, None) => "the next candidate that polls takes over, with a larger fencing token".to_owned(),
        (true, Some(_)) => format!(
            "the next member that scans takes over with a larger fencing token, at most {SCAN_INTERVAL} later unless its program \
             sets another scan_interval"
        ),
        (false, _) => "another candidate has taken over already".to_owned(),
    };
    intervene::print(&args.lock, &seen, &intervention, &next, args.output, output)?;
    Ok(Exit::Done)
}

/// The question to the operator, which says what the release means.
fn question(lock: &OperatorLock, seen: &LockState, holder: &str) -> String {
    let token = seen.record.leader_transitions;
    match seen.session() {
        None => format!(
            "{holder:?} holds {lock} (fencing token {token}). If it is alive, two leaders are possible. Take the lease away?"
        ),
        Some(id) => format!(
            "{holder:?} holds {lock} (fencing token {token}) through the session {id}, which keeps its other locks. If it is \
             alive, it leads this lock until its next scan, at most {SCAN_INTERVAL} later unless its program sets another scan_interval, \
             so two leaders are possible. Take the lock away?"
        ),
    }
}
