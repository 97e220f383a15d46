//! `--post`: an HTTP request for every change.
//!
//! The requests are sent in order, one at a time, beside the watch: a slow receiver hides no change.

use std::fmt::Display;
use std::time::Duration;

use leaderelection::causes::with_causes;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, StatusCode, Url};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::cloud_event::MEDIA_TYPE;
use crate::client::client_for;
use crate::exit::Failure;
use crate::output::Output;

/// The pauses before a request is sent again.
const PAUSES: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];

/// The number of changes that wait for their request.
const WAITING: usize = 1000;

/// The sender of requests. The process ends without those that still wait.
#[derive(Debug)]
pub(super) struct Poster {
    /// The changes that are to be told: the event, and the body of its request.
    changes: mpsc::Sender<(String, String)>,
    output: Output,
}

impl Poster {
    /// `url` may have secrets, and no message has more of it than the host.
    pub(super) fn start(url: &str, request_timeout: Duration, output: &Output) -> Result<Self, Failure> {
        let receiver = Receiver::new(url, request_timeout)?;
        let (changes, mut waiting) = mpsc::channel::<(String, String)>(WAITING);
        let messages = output.clone();
        tokio::spawn(async move {
            while let Some((event, body)) = waiting.recv().await {
                if let Err(problem) = receiver.deliver(&body).await {
                    // The host alone: the path and the query of a webhook are secrets.
                    let host = receiver.url.host_str().unwrap_or_default();
                    messages.warn(format_args!("{host} did not take {event}: {problem}; left it out"));
                }
            }
        });
        Ok(Self { changes, output: output.clone() })
    }

    pub(super) fn post(&self, event: &str, body: String) {
        if self.changes.try_send((event.to_owned(), body)).is_err() {
            self.output.warn(format_args!("{WAITING} changes wait for the receiver of --post; left {event} out"));
        }
    }
}

struct Receiver {
    client: Client,
    url: Url,
}

impl Receiver {
    fn new(url: &str, request_timeout: Duration) -> Result<Self, Failure> {
        let refuse = |problem: &dyn Display| {
            Failure::usage(format!("--post: {problem}; name a URL such as https://example.com/hook"))
        };
        let url = Url::parse(url).map_err(|error| refuse(&error))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refuse(&format_args!("{:?} is not a scheme of HTTP", url.scheme())));
        }
        let client = client_for(url.as_str(), request_timeout);
        let client = client.map_err(|error| Failure::internal(format!("--post: {}", with_causes(&error))))?;
        Ok(Self { client, url })
    }

    /// Sends the request until it is answered for good. Fails with the last problem.
    async fn deliver(&self, body: &str) -> Result<(), String> {
        let mut pauses = PAUSES.iter();
        loop {
            let (problem, may_pass) = match self.ask(body).await {
                Ok(status) if status.is_success() => return Ok(()),
                Ok(status) => (format!("the answer was {status}"), is_passing(status)),
                Err(error) => (with_causes(&error.without_url()), true),
            };
            match pauses.next().filter(|_| may_pass) {
                Some(pause) => sleep(*pause).await,
                None => return Err(problem),
            }
        }
    }

    async fn ask(&self, body: &str) -> reqwest::Result<StatusCode> {
        let request = self.client.post(self.url.clone()).header(CONTENT_TYPE, MEDIA_TYPE).body(body.to_owned());
        Ok(request.send().await?.status())
    }
}

/// Returns `true` if the same request may succeed later.
fn is_passing(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
}
