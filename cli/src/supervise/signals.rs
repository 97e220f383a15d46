//! The signals that are passed on to the command.

use std::fs;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::exit::Failure;

const PASSED_ON: [Signal; 7] =
    [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2, Signal::WINCH];

/// The signals with which containers of other kinds are told to end: SIGPWR by LXC, SIGRTMIN+3 by those made for systemd. The
/// command gets SIGTERM for them, which it is more likely to know.
#[cfg(target_os = "linux")]
pub(crate) const LIKE_TERM: [i32; 2] = [Signal::POWER.as_raw(), 34 + 3];
#[cfg(not(target_os = "linux"))]
pub(crate) const LIKE_TERM: [i32; 0] = [];

/// Lets a file that has reached the limit on its size (`ulimit -f`), such as the log, refuse a write and not end this process.
/// A handler that does nothing, unlike an ignored signal, is not passed on to the command. Within a runtime.
pub(crate) fn outlive_full_files() {
    let _ = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()));
}

/// Returns the signals that are passed on, except for those that this process was started to ignore: `nohup` and
/// background jobs of a shell rely on that. The command ignores them as well.
pub(crate) fn not_ignored() -> impl Iterator<Item = Signal> {
    let ignored = ignored();
    PASSED_ON.into_iter().filter(move |signal| ignored >> (signal.as_raw() - 1) & 1 == 0)
}

/// The ignored signals, one bit each. Only Linux tells them in a way that is open to safe Rust.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// The name of a signal, as people write it.
pub(crate) fn name(signal: Signal) -> String {
    let named = nix::sys::signal::Signal::try_from(signal.as_raw());
    named.map_or_else(|_| format!("signal {}", signal.as_raw()), |signal| signal.as_str().to_owned())
}

/// Returns `true` if this signal ends the wait for leadership.
pub(crate) fn ends_the_wait(signal: Signal) -> bool {
    ends_the_campaign(signal) || signal == Signal::HUP
}

/// Returns `true` if this signal ends a campaign after the command has ended. SIGHUP does not: services reread
/// their settings at SIGHUP.
pub(crate) fn ends_the_campaign(signal: Signal) -> bool {
    matches!(signal, Signal::TERM | Signal::INT | Signal::QUIT)
}

/// The received signals.
#[derive(Debug)]
pub(crate) struct Signals(UnboundedReceiver<Signal>);

impl Signals {
    /// Starts to listen. From now on, these signals do not end this process.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let (sender, receiver) = unbounded_channel();
        let passed_on = not_ignored().map(|signal| (signal.as_raw(), signal));
        for (raw, meant) in passed_on.chain(LIKE_TERM.map(|raw| (raw, Signal::TERM))) {
            let mut stream = signal(SignalKind::from_raw(raw))
                .map_err(|error| Failure::internal(format!("cannot listen for signal {raw}: {error}")))?;
            let sender = sender.clone();
            tokio::spawn(async move { while stream.recv().await.is_some() && sender.send(meant).is_ok() {} });
        }
        Ok(Self(receiver))
    }

    /// Returns the next signal. Cancellation safe.
    pub(crate) async fn next(&mut self) -> Signal {
        match self.0.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }

    /// Returns the next signal that ends the wait. Cancellation safe.
    pub(crate) async fn next_ending(&mut self) -> Signal {
        loop {
            let signal = self.next().await;
            if ends_the_wait(signal) {
                return signal;
            }
        }
    }
}
