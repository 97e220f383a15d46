//! `leaderelect release`.

mod session;

use crate::commands::intervene::confirm::Confirmation;
use crate::commands::intervene::{self, LOOK_AROUND, LockState};
use crate::exit::{Exit, Failure};
use crate::lock::OperatorLock;
use crate::output::{Format, Output};

/// Take the lease away from its holder
///
/// Use it for a holder that is known to be dead or stuck, if nobody can wait until the lease has expired. Two leaders
/// are possible: a living holder continues to lead until its next renewal, while another candidate begins at once. For
/// a living holder, prefer `leaderelect transfer`. The release keeps the fencing token, and the next term raises it.
///
/// A holder of client-go, or of another library, does not notice the release: if it is alive, it takes the lease back and goes
/// on, or leads beside the next leader until its own renew deadline. End such a process in place of a release.
///
/// The URL of a lock that a session holds, PREFIX/locks/NAME: the lock alone is released, and the session keeps its
/// other locks. A living holder continues to lead until it next looks at its locks: 30 seconds later at most, unless
/// its program sets another look_around. The other members notice the release when they look at the locks, so that a
/// new leader may take that long too.
///
/// The URL of a session, PREFIX/sessions/ID: the session is ended, with all its locks, which are named first. A living
/// holder continues to lead all of them until its next renewal, while other members take them at once. It then opens
/// another session and competes again.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    lock: OperatorLock,
    /// Confirm that two leaders are possible. The command asks once more, unless --yes is given too
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    confirmation: Confirmation,
    /// The output format of the record before and after
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

const EXAMPLES: &str = "\
Examples:
  The holder is dead, and nobody can wait until its lease has expired:
    leaderelect release --force s3://bucket/locks/scheduler";

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    if !args.force {
        let message = "a lease is its holder's: end the holder, or hand over with `leaderelect transfer`, or add \
                       --force if the holder is dead";
        return Err(Failure::usage(message));
    }
    let target = args.lock.target(None).await?;
    let seen = intervene::look(&args.lock, &target).await?;
    if let Some(id) = target.session_id(&seen.record) {
        return session::end(&args.lock, id, &seen, (args.confirmation, args.output), output).await;
    }
    if let Some(holder) = seen.foreign_holder() {
        output.say(format_args!(
            "the record of {holder} has no writeId, so it is a candidate of client-go or of another library: if it is alive, it \
             takes the lease back without ending its work, or leads beside the next leader until its own renew deadline"
        ));
    }
    if let Some(holder) = seen.look.holder()
        && !args.confirmation.of(&question(&args.lock, &seen, holder), output)?
    {
        output.say("nothing was changed");
        return Ok(Exit::Held);
    }
    let intervention = intervene::within(&args.lock, target.force_release(&seen.record)).await?;
    let next = match (intervention.after.is_released(), seen.session()) {
        (true, None) if seen.foreign_holder().is_some() => {
            "the next candidate that looks takes over, and that may be the same holder, if it is alive".to_owned()
        }
        (true, None) => "the next candidate that looks takes over, with a larger fencing token".to_owned(),
        (true, Some(_)) => format!(
            "the next member that looks takes over, with a larger fencing token, {LOOK_AROUND} later at most unless its \
             program sets another look_around"
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
            "{holder} holds {lock} (fencing token {token}). If it is alive, two leaders are possible. Take the lease away?"
        ),
        Some(id) => format!(
            "{holder} holds {lock} (fencing token {token}) through the session {id}, which keeps its other locks. If it is \
             alive, it leads this lock until it next looks at its locks, {LOOK_AROUND} later at most unless its program sets \
             another look_around, and two leaders are possible. Take the lock away?"
        ),
    }
}
