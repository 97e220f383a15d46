//! The signals that are passed on to the command.

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::exit::{Exit, Failure};

const PASSED_ON: [Signal; 7] =
    [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2, Signal::WINCH];

/// Whether whoever waits for leadership stops at this signal.
pub(super) fn ends_the_wait(signal: Signal) -> bool {
    ends_the_campaign(signal) || signal == Signal::HUP
}

/// Whether a campaign ends when the command has. Not at SIGHUP, by which services read their settings anew.
pub(super) fn ends_the_campaign(signal: Signal) -> bool {
    matches!(signal, Signal::TERM | Signal::INT | Signal::QUIT)
}

/// Those that we got.
#[derive(Debug)]
pub(super) struct Signals(UnboundedReceiver<Signal>);

impl Signals {
    /// From here on the signals do not end this process.
    pub(super) fn listen() -> Result<Self, Failure> {
        let (sender, receiver) = unbounded_channel();
        for kind in PASSED_ON {
            let mut stream = signal(SignalKind::from_raw(kind.as_raw())).map_err(|error| {
                Failure::new(Exit::Internal, format!("cannot listen for signal {}: {error}", kind.as_raw()))
            })?;
            let sender = sender.clone();
            tokio::spawn(async move { while stream.recv().await.is_some() && sender.send(kind).is_ok() {} });
        }
        Ok(Self(receiver))
    }

    /// The next one. Cancellation safe.
    pub(super) async fn next(&mut self) -> Signal {
        match self.0.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }

    /// The next one that ends the wait. Cancellation safe.
    pub(super) async fn next_ending(&mut self) -> Signal {
        loop {
            let signal = self.next().await;
            if ends_the_wait(signal) {
                return signal;
            }
        }
    }
}
