//! `leaderelect health`.

use std::path::Path;
#[cfg(unix)]
use std::path::PathBuf;
use std::time::Duration;

use crate::args::timing::duration;
use crate::client::client_for_sidecar;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::pages::http::{Addresses, DEFAULT, addresses};

/// Check whether the sidecar on this machine is healthy
///
///     leaderelect health
///
/// For probes that run a command. The exit code is 0 if the answer is yes, 1 if it
/// is no, and 69 if there is no answer. --listen and --probe-listen have the same
/// variables as in `leaderelect serve`, so a container that sets them needs no
/// options. If the sidecar uses TLS, ask its --probe-listen.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Check /leading instead of /healthz
    ///
    /// Asks whether the sidecar leads.
    #[arg(long)]
    leading: bool,
    /// Check /readyz instead of /healthz
    ///
    /// Asks whether the sidecar is ready.
    #[arg(long, conflicts_with = "leading")]
    ready: bool,
    /// Ask this address
    ///
    /// The value of --listen of `leaderelect serve`.
    #[arg(long, value_name = "HOST:PORT", value_parser = Place::parse, default_value = DEFAULT)]
    listen: Place,
    /// Ask this one instead of --listen
    ///
    /// The address of the sidecar's probes.
    #[arg(long, value_name = "HOST:PORT", value_parser = addresses)]
    probe_listen: Option<Addresses>,
    /// Limit the time of the request
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    request_timeout: Duration,
}

const EXAMPLES: &str = "\
Examples:
  In a pod, where the kubelet cannot reach the port:
    livenessProbe: {exec: {command: [leaderelect, health]}}
  In a script beside the sidecar:
    leaderelect --quiet health --leading && ./work";

/// The place at which the sidecar listens, as its own option says.
#[derive(Clone, Debug)]
enum Place {
    At(Addresses),
    #[cfg(unix)]
    Socket(PathBuf),
    Stdin,
}

impl Place {
    fn parse(text: &str) -> Result<Self, String> {
        #[cfg(unix)]
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Self::Socket(path.into()));
        }
        if text == "stdin" { Ok(Self::Stdin) } else { addresses(text).map(Self::At) }
    }

    fn host(&self) -> Result<String, Failure> {
        let address = match self {
            Self::At(addresses) => addresses.to_ask().map(|address| address.to_string()),
            #[cfg(unix)]
            Self::Socket(_) => Some("localhost".to_owned()),
            Self::Stdin => None,
        };
        let advice = "--listen stdin has no address; run `leaderelect serve` with --probe-listen ADDRESS, and pass that address here";
        address.ok_or_else(|| Failure::usage(advice))
    }

    fn socket(&self) -> Option<&Path> {
        match self {
            #[cfg(unix)]
            Self::Socket(path) => Some(path),
            _ => None,
        }
    }
}

/// The longest answer that is repeated.
const LONGEST: usize = 200;

pub(crate) async fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let path = match (args.leading, args.ready) {
        (true, _) => "leading",
        (_, true) => "readyz",
        _ => "healthz",
    };
    let place = args.probe_listen.map_or(args.listen, Place::At);
    let url = format!("http://{}/{path}", place.host()?);
    let asked = async {
        let client = client_for_sidecar(args.request_timeout, place.socket())?;
        let answer = client.get(&url).send().await?;
        Ok((answer.status(), answer.text().await?))
    };
    let (status, text) = asked.await.map_err(|error: reqwest::Error| {
        let problem = leaderelection::causes::with_causes(&error);
        let advice = "check that `leaderelect serve` runs, and pass it the same --listen or --probe-listen";
        Failure::new(Exit::Unavailable, format!("no answer from {url}: {problem}; {advice}"))
    })?;
    let text: String = text.trim().lines().collect::<Vec<_>>().join(", ").chars().take(LONGEST).collect();
    if !status.is_success() {
        return Err(Failure::new(Exit::Unfit, format!("{url}: {text}")));
    }
    output.say(text);
    Ok(Exit::Done)
}
