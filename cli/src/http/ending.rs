//! The signals to a server.

use super::signals::{Signals, Told};
use super::tls::Tls;
use crate::output::Output;

/// The end of a server, as signals ask for it. SIGHUP ends nothing: it makes the server read its certificate again.
#[derive(Debug)]
pub(crate) struct Ending {
    signals: Signals,
    tls: Option<Tls>,
    output: Output,
}

impl Ending {
    pub(crate) fn new(signals: Signals, tls: Option<Tls>, output: &Output) -> Self {
        Self { signals, tls, output: output.clone() }
    }

    /// Waits until a signal asks for the end.
    pub(crate) async fn told(&mut self) {
        while self.signals.next().await == Told::Reload {
            match self.tls.as_ref().map(Tls::reload) {
                Some(Ok(())) => self.output.say("read the certificate and its key anew"),
                Some(Err(failure)) => self.output.say(format_args!("going on with the old certificate: {failure}")),
                None => {}
            }
        }
    }
}
