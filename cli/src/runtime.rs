//! The runtimes of this program, each with one thread for blocking calls that stays.
//!
//! A runtime starts such threads when a call comes, such as the look-up of a name, ends them when they have been idle for a
//! while, and panics if the system gives none: at the limit of processes (`pids.max`, `TasksMax=`, `ulimit -u`), which the
//! command of `run` may use up itself. A thread that is there serves all calls, one after the other.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// The time after which an idle thread ends.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// The pause between two calls that do nothing but keep a thread from being idle.
const PAUSE: Duration = Duration::from_secs(15);

/// Builds the runtime.
pub(crate) fn build(builder: &mut Builder) -> io::Result<Runtime> {
    let runtime = builder.enable_all().thread_keep_alive(KEEP_ALIVE).build()?;
    runtime.spawn(async {
        loop {
            // On a task of its own, which alone ends if there is no thread at all: after a long standstill, for example.
            let _ = tokio::spawn(async { spawn_blocking(|| ()).await }).await;
            sleep(PAUSE).await;
        }
    });
    Ok(runtime)
}
