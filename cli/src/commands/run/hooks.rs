//! `--on-failure` and `--on-loss`: commands for the end of a term that went wrong; and `--on-renew-failure`, for one that may.
//!
//! A hook runs on a task of its own. Nothing of the election waits for a hook.

use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::handle::LastError;
use leaderelection::{LeaderHandle, Leadership};
use rustix::process::{Pid, Signal};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::loss::Loss;
use super::state::{Ended, TOO_LONG};
use crate::args::timing::duration;
use crate::cause;
use crate::exit::Exit;
use crate::output::Output;
use crate::output::escape::for_environment;
use crate::supervise::process_tree::{Below, Family};

#[derive(Clone, Debug, clap::Args)]
pub(super) struct HookArgs {
    /// Run this if the command fails
    ///
    /// A shell command that runs after a term whose command failed, ran too long or could not be started, but not if a signal
    /// asked leaderelect to stop. It gets the variables of the command, LEADERELECTION_EVENT (failure or loss),
    /// LEADERELECTION_REASON (such as failed, taken_over or transferred), LEADERELECTION_MESSAGE (a sentence) and
    /// LEADERELECTION_EXIT_CODE (that of `run`).
    #[arg(long, value_name = "SHELL", requires = "command")]
    on_failure: Option<String>,
    /// Run this after a lost term
    ///
    /// A shell command that runs after a term was lost or handed over, once no process of the command is left. It does not run
    /// if leaderelect itself is killed.
    #[arg(long, value_name = "SHELL")]
    on_loss: Option<String>,
    /// Run this if renewals fail
    ///
    /// A shell command that runs if no renewal has succeeded for half of --renew-deadline: time to alert somebody or to save the
    /// work before a loss. LEADERELECTION_EVENT is renew_failure, and LEADERELECTION_MESSAGE has the remaining time and the
    /// cause. It runs again if renewals recover and fail again.
    #[arg(long, value_name = "SHELL", hide_short_help = true)]
    on_renew_failure: Option<String>,
    /// Kill hooks after this time
    ///
    /// Hooks delay neither the release nor the next term, but leaderelect waits for them before it exits. A hook that fails is
    /// reported, and does not change the exit code.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration, hide_short_help = true)]
    hook_timeout: Duration,
}

/// Environment variables.
pub(super) type Variables = Vec<(&'static str, String)>;

/// The hooks of a process, and those that run.
#[derive(Debug)]
pub(super) struct Hooks {
    args: HookArgs,
    /// Variables that a hook does not get.
    hidden: Vec<String>,
    output: Output,
    /// The renew deadline.
    renew: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The variables of the last term.
    term: Variables,
    running: JoinSet<()>,
}

/// Tells a hook of its occasion.
fn variables(event: &str, reason: &str, message: &str, code: u8) -> Variables {
    vec![
        ("LEADERELECTION_EVENT", event.to_owned()),
        ("LEADERELECTION_REASON", reason.to_owned()),
        ("LEADERELECTION_MESSAGE", for_environment(message)),
        ("LEADERELECTION_EXIT_CODE", code.to_string()),
    ]
}

impl Hooks {
    pub(super) fn new(args: HookArgs, hidden: Vec<String>, renew: Duration, output: Output) -> Arc<Self> {
        Arc::new(Self { args, hidden, output, renew, state: Mutex::default() })
    }

    /// A term with these variables begins.
    pub(super) fn begin(&self, variables: &Variables) {
        self.state().term.clone_from(variables);
    }

    /// The command of the term has ended. `asked` if a signal asked for that end; `loss` completes with the reason for a loss.
    pub(super) fn on_end(&self, ended: &Ended, asked: bool, loss: impl Future<Output = Option<Loss>> + Send + 'static) {
        let (reason, code) = match ended {
            Ended::Lost { .. } => return self.on_loss(loss),
            Ended::ByItself(Exit::Done | Exit::Code(0)) => return,
            _ if asked => return,
            Ended::ByItself(exit) => ("failed", exit.code()),
            Ended::TooLong => ("ran_too_long", TOO_LONG.code()),
            Ended::NotStarted(failure) => ("not_started", failure.exit.code()),
        };
        let occasion = variables("failure", reason, &ended.to_string(), code);
        self.start("--on-failure", self.args.on_failure.as_ref(), async { occasion });
    }

    /// The term was lost. `loss` completes with the reason.
    pub(super) fn on_loss(&self, loss: impl Future<Output = Option<Loss>> + Send + 'static) {
        let occasion = async {
            let loss = loss.await;
            let message = loss.as_ref().map_or_else(|| "leadership was lost".to_owned(), |loss| loss.words("", "was"));
            variables("loss", loss.as_ref().map_or("unknown", Loss::name), &message, Exit::Lost.code())
        };
        self.start("--on-loss", self.args.on_loss.as_ref(), occasion);
    }

    /// Watches over the renewals of a term, until the returned value is dropped.
    pub(super) fn watch(
        self: &Arc<Self>,
        leadership: &Leadership,
        handles: Vec<LeaderHandle>,
    ) -> Option<AbortOnDropHandle<()>> {
        let (hooks, leadership) = (Arc::clone(self), leadership.clone());
        let watch = async move {
            loop {
                let known = leadership.valid_until();
                SystemClock.sleep_until(known - hooks.renew / 2).await;
                if leadership.valid_until() != known {
                    continue;
                }
                let left = leadership.remaining();
                if left.is_zero() {
                    // It ended gracefully, or this process stood still.
                    return;
                }
                let error = handles.iter().find_map(|handle| {
                    let is_led = handle.fencing_token() == Some(leadership.fencing_token());
                    handle.last_error().filter(|error| is_led && error.age + left <= hooks.renew)
                });
                hooks.on_renew_failure(left, error);
                while leadership.valid_until() == known {
                    sleep(hooks.renew / 20).await;
                }
            }
        };
        self.args.on_renew_failure.as_ref().map(|_| AbortOnDropHandle::new(tokio::spawn(watch)))
    }

    fn on_renew_failure(&self, left: Duration, error: Option<LastError>) {
        let left = humantime::format_duration(Duration::from_secs(left.as_secs()));
        let why = error.map_or_else(|| "the store has not answered".to_owned(), |error| cause::of_error(&error));
        let message = format!("leadership ends in {left} unless a renewal succeeds: {why}");
        let occasion = variables("renew_failure", "renewal_overdue", &message, Exit::Lost.code());
        self.start("--on-renew-failure", self.args.on_renew_failure.as_ref(), async { occasion });
    }

    fn start(
        &self,
        option: &'static str,
        line: Option<&String>,
        occasion: impl Future<Output = Variables> + Send + 'static,
    ) {
        let Some(line) = line else { return };
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdin(Stdio::null());
        for name in &self.hidden {
            command.env_remove(name);
        }
        let mut state = self.state();
        while state.running.try_join_next().is_some() {}
        command.envs(state.term.iter().map(|(name, value)| (name, value)));
        let (limit, output) = (self.args.hook_timeout, self.output.clone());
        state.running.spawn(async move {
            command.envs(occasion.await);
            match within(command, limit).await {
                Ok(Some(status)) if status.success() => {}
                Ok(Some(status)) => output.warn(format_args!("the {option} hook failed: {status}")),
                Ok(None) => {
                    let limit = humantime::format_duration(limit);
                    output.warn(format_args!(
                        "the {option} hook timed out after {limit} (--hook-timeout) and was killed"
                    ));
                }
                Err(error) => output.warn(format_args!("cannot run the {option} hook with sh: {error}")),
            }
        });
    }

    /// Completes when no hook runs any more. Dropping the future kills those that run.
    pub(super) async fn ended(&self) {
        let mut running = std::mem::take(&mut self.state().running);
        while running.join_next().await.is_some() {}
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A hook, which is killed with all that it started when this is dropped.
struct Child(std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        // Not collected yet, so that the number is no other process's.
        if matches!(self.0.try_wait(), Ok(None)) {
            let below = Below { root: Pid::from_child(&self.0), aside: None, except: None, group: None };
            Family::find(below).signal(Signal::KILL);
            // A process that waits for a device dies later: nobody waits for that.
            let _ = self.0.kill();
        }
    }
}

/// Returns the end of the command; `None` if the command was killed because its time was over. Cancellation safe: the
/// command is killed.
///
/// The command is in the process group of this process, which no command of `run` is in.
async fn within(mut command: Command, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let mut children = signal(SignalKind::child())?;
    // The program may be on a disk that hangs.
    let mut child =
        tokio::task::spawn_blocking(move || command.spawn().map(Child)).await.map_err(io::Error::other)??;
    let ended = async {
        loop {
            if let Some(status) = child.0.try_wait()? {
                return Ok(status);
            }
            children.recv().await;
        }
    };
    tokio::time::timeout(limit, ended).await.ok().transpose()
}
