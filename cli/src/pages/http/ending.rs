//! The signals to a server.

use super::server::Server;
use super::signals::Signals;
use super::tls::Tls;
use super::token::Token;
use crate::exit::Failure;
use crate::output::Output;

/// The end of a server, as signals ask for it. SIGHUP ends nothing: it makes the server read its certificate and its token
/// again.
#[derive(Debug)]
pub(crate) struct Ending {
    signals: Signals,
    tls: Option<Tls>,
    token: Option<Token>,
    output: Output,
}

impl Ending {
    /// Takes everything that the server may have to read again, and tells of the end of its certificate, in the metrics of the
    /// lock `name` and in the log.
    pub(crate) fn new(
        signals: Signals,
        server: &Server,
        token: Option<Token>,
        name: impl Into<String>,
        output: &Output,
    ) -> Self {
        let tls = server.tls.clone();
        if let Some(tls) = &tls {
            tls.tell_of_expiry(name);
        }
        Self { signals, tls, token, output: output.clone() }
    }

    /// Waits until a signal asks for the end.
    pub(crate) async fn told(&mut self) {
        while !self.signals.next_is_end().await {
            self.read_anew("certificate and key", self.tls.as_ref().map(Tls::reload));
            self.read_anew("token", self.token.as_ref().and_then(Token::reload));
        }
    }

    fn read_anew(&self, what: &str, read: Option<Result<(), Failure>>) {
        match read {
            Some(Ok(())) => self.output.say(format_args!("reloaded the {what}")),
            Some(Err(failure)) => self.output.say(format_args!("keeping the old {what}: {failure}")),
            None => {}
        }
    }
}
