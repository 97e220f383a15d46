//! `leaderelect release`.

use leaderelection::admin::force_release;

use crate::confirm::Confirmation;
use crate::exit::{Exit, Failure};
use crate::intervene;
use crate::lock::LockUrl;
use crate::output::{Format, Output};

/// Take the lease away from its holder
///
/// Use it for a holder that is known to be dead or stuck, if nobody can wait until the lease has expired. Two
/// leaders are possible: a living holder goes on leading until its next renewal, while another candidate begins
/// at once. For a living holder, prefer `leaderelect transfer`. The release keeps the fencing token, and the
/// next term raises it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The lock, such as s3://bucket/key or file:///directory/name
    #[arg(value_name = "URL", value_parser = LockUrl::parser())]
    lock: LockUrl,
    /// Confirm that two leaders are possible. The command asks once more, unless --yes is given too
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    confirmation: Confirmation,
    /// The output format of the record before and after
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    if !args.force {
        let message = "a lease is its holder's: end the holder, or hand over with `leaderelect transfer`, or add \
                       --force if the holder is dead";
        return Err(Failure::usage(message));
    }
    let lock = args.lock.open_to_look().await?;
    let seen = intervene::look(&args.lock, &lock).await?;
    if !seen.is_released() {
        let question = format!(
            "{} holds {} (fencing token {}). If it is alive, two leaders are possible. Take the lease away?",
            seen.holder_identity, args.lock, seen.leader_transitions
        );
        if !args.confirmation.of(&question, output)? {
            output.say("nothing was changed");
            return Ok(Exit::Held);
        }
    }
    let intervention = intervene::within(&args.lock, force_release(&lock, &seen)).await?;
    let next = match intervention.after.is_released() {
        true => "the next candidate that looks takes over, with a larger fencing token",
        false => "another candidate has taken over already",
    };
    intervene::print(&args.lock, &intervention, next, args.output, output)?;
    Ok(Exit::Done)
}
