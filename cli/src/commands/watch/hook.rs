//! The command that runs for every change.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::{Command, ExitStatus, Stdio};

use crate::environment;
use crate::exit::{Exit, Failure};
use crate::lock::status::LockStatus;
use crate::lock::view::View;
use crate::output::Output;
use crate::output::escape::for_environment;

/// Runs the command for one change, and waits for its end.
pub(super) async fn run(
    program: &OsStr,
    arguments: &[OsString],
    time: &str,
    event: &str,
    view: &View,
    output: &Output,
) -> Result<(), Failure> {
    let token = view.fencing_token.map(|token| token.to_string()).unwrap_or_default();
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    for name in environment::hidden() {
        command.env_remove(name);
    }
    command.env("LEADERELECTION_EVENT", event).env("LEADERELECTION_TIME", time);
    let leader = view.holder.as_deref().filter(|_| view.status != LockStatus::Expired).unwrap_or_default();
    command.env("LEADERELECTION_LEADER", for_environment(leader));
    command.env("LEADERELECTION_FENCING_TOKEN", token).env("LEADERELECTION_LOCK", &view.lock);
    let ended = tokio::task::spawn_blocking(move || command.status()).await;
    match ended.map_err(io::Error::other).flatten() {
        Ok(status) if status.success() => {}
        Ok(status) => output.say(format_args!("the command for {event} failed: {}", in_words(status))),
        Err(error) => {
            let program = program.display();
            let problem = format!("cannot run {program}: {error}; check the command after `--`");
            let exit = if error.kind() == io::ErrorKind::NotFound { Exit::Code(127) } else { Exit::Code(126) };
            return Err(Failure::new(exit, problem));
        }
    }
    Ok(())
}

fn in_words(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exit code {code}"),
        None => format!("{status}"),
    }
}
