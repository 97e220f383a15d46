//! Messages to systemd: readiness, the state, and signs of life.
//!
//! A task of its own sends them. A service manager that reads nothing delays no renewal.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use clap::ValueEnum;
use futures_util::future::OptionFuture;
use leaderelection::FencingToken;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Interval, interval};

use crate::exit::Failure;
use crate::output::escape::{LONGEST_NAME, cut};

/// The variables that systemd sets for a service.
pub(crate) const VARIABLES: [&str; 3] = [SOCKET, WATCHDOG, WATCHDOG_PID];
const SOCKET: &str = "NOTIFY_SOCKET";
const WATCHDOG: &str = "WATCHDOG_USEC";
const WATCHDOG_PID: &str = "WATCHDOG_PID";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct NotifyArgs {
    /// Notify systemd when leading or following
    ///
    /// For Type=notify. With `leading`, the service is ready when it leads, so units ordered after it start only on the
    /// leader's machine. With `following`, it is ready as soon as it competes, so they start on every machine. Sends watchdog
    /// messages if WatchdogSec= is set. Does nothing if NOTIFY_SOCKET is not set.
    #[arg(long, value_name = "WHEN")]
    notify: Option<Ready>,
}

/// The moment at which a service counts as ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Ready {
    /// Ready when this process leads
    Leading,
    /// Ready when this process competes
    Following,
}

/// Tells systemd about this service. Clones tell the same systemd.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notifier {
    ready: Option<Ready>,
    messages: Option<UnboundedSender<String>>,
}

impl NotifyArgs {
    /// Returns `true` if this process speaks for the service, and its command does not.
    pub(crate) fn is_given(&self) -> bool {
        self.notify.is_some()
    }

    /// Starts to send, within a runtime. Signs of life are sent while `is_alive` returns `true`.
    pub(crate) fn start(&self, is_alive: impl Fn() -> bool + Send + 'static) -> Result<Notifier, Failure> {
        let Some((ready, name)) = self.notify.zip(std::env::var_os(SOCKET)) else { return Ok(Notifier::default()) };
        let socket = connect(&name).map_err(|error| {
            let name = name.display();
            Failure::internal(format!("cannot reach systemd at {name}: {error}; remove --notify, or unset {SOCKET}"))
        })?;
        let (sender, receiver) = unbounded_channel();
        tokio::spawn(send(socket, receiver, ping_period(), is_alive));
        Ok(Notifier { ready: Some(ready), messages: Some(sender) })
    }
}

impl Notifier {
    /// This process competes.
    pub(crate) fn follows(&self, lock: &str) {
        self.tell(self.ready == Some(Ready::Following), &format!("competing for {lock}"));
    }

    /// This process leads.
    pub(crate) fn leads(&self, fencing_token: FencingToken) {
        self.tell(self.ready.is_some(), &format!("leading with fencing token {fencing_token}"));
    }

    /// This process waits for another to end.
    pub(crate) fn waits_for(&self, leader: &str) {
        self.tell(false, &format!("waiting: {leader} leads"));
    }

    /// This process is about to end.
    pub(crate) fn stops(&self) {
        self.send("STOPPING=1\n".to_owned());
    }

    fn tell(&self, is_ready: bool, status: &str) {
        // A datagram has room for more than any line on a screen.
        let status = cut(&status.replace(char::is_control, " "), 2 * LONGEST_NAME);
        self.send(format!("{}STATUS={status}\n", if is_ready { "READY=1\n" } else { "" }));
    }

    fn send(&self, message: String) {
        if let Some(messages) = &self.messages {
            // The task ends only with the runtime.
            let _ = messages.send(message);
        }
    }
}

fn connect(name: &OsString) -> io::Result<tokio::net::UnixDatagram> {
    let address = match name.as_bytes() {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        [b'@', rest @ ..] => {
            #[cfg(target_os = "android")]
            use std::os::android::net::SocketAddrExt as _;
            #[cfg(target_os = "linux")]
            use std::os::linux::net::SocketAddrExt as _;
            SocketAddr::from_abstract_name(rest)?
        }
        _ => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    tokio::net::UnixDatagram::from_std(socket)
}

/// The pause between two signs of life, half of what systemd waits for.
fn ping_period() -> Option<Duration> {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let is_for_us = number(WATCHDOG_PID).is_none_or(|pid| pid == u64::from(std::process::id()));
    let period = number(WATCHDOG).filter(|_| is_for_us).map(Duration::from_micros)?;
    Some((period / 2).max(Duration::from_millis(1)))
}

async fn send(
    socket: tokio::net::UnixDatagram,
    mut messages: UnboundedReceiver<String>,
    period: Option<Duration>,
    is_alive: impl Fn() -> bool,
) {
    let mut pings = period.map(interval);
    loop {
        let message = tokio::select! {
            biased;
            message = messages.recv() => match message {
                Some(message) => message,
                None => return,
            },
            Some(_) = OptionFuture::from(pings.as_mut().map(Interval::tick)) => match is_alive() {
                true => "WATCHDOG=1\n".to_owned(),
                false => continue,
            },
        };
        if let Err(error) = socket.send(message.as_bytes()).await {
            tracing::warn!(%error, "cannot notify systemd; check that its NOTIFY_SOCKET still exists");
        }
    }
}
