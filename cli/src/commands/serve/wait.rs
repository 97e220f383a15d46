//! Waiting for another leader than the one that a client knows.

use std::time::Duration;

use serde::{Deserialize, Deserializer};
use tokio_util::sync::CancellationToken;

use super::snapshot::Snapshot;
use crate::args::timing::duration;
use leaderelection::{FencingToken, LeaderHandle};

/// The longest wait. Proxies give up on connections that are silent for longer.
const LONGEST: Duration = Duration::from_secs(60);

/// The pause between two reads of the clock: nothing tells of a lease that expires, or that is renewed after that.
pub(super) const TICK: Duration = Duration::from_secs(1);

/// The query of /leader.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wait {
    /// The longest time to wait.
    #[serde(default, deserialize_with = "read_duration")]
    wait: Option<Duration>,
    /// The fencing token that the client knows; `Some(None)` if the client knows that nobody leads.
    #[serde(default, deserialize_with = "read_token")]
    after: Option<Option<FencingToken>>,
}

fn read_duration<'de, D: Deserializer<'de>>(text: D) -> Result<Option<Duration>, D::Error> {
    duration(&String::deserialize(text)?).map(Some).map_err(serde::de::Error::custom)
}

fn read_token<'de, D: Deserializer<'de>>(text: D) -> Result<Option<Option<FencingToken>>, D::Error> {
    let text = String::deserialize(text)?;
    if text.is_empty() {
        return Ok(Some(None));
    }
    let wrong = |_| {
        serde::de::Error::custom(format!(
            "invalid fencing token {text}: expected the last fencingToken, or nothing if it was null"
        ))
    };
    text.parse().map(|token| Some(Some(FencingToken::new(token)))).map_err(wrong)
}

impl Wait {
    /// Returns the leader at once if the client does not know it, or else when the leader changes. Without a change,
    /// returns when the time is over, or when this process ends.
    pub(super) async fn leader(self, handle: &LeaderHandle, shutdown: &CancellationToken) -> Snapshot {
        let mut handle = handle.clone();
        let known = self.after.unwrap_or_else(|| Snapshot::take(&handle).fencing_token);
        let mut over = std::pin::pin!(tokio::time::sleep(self.wait.unwrap_or_default().min(LONGEST)));
        loop {
            let now = Snapshot::take(&handle);
            if now.fencing_token != known {
                return now;
            }
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return Snapshot::take(&handle),
                changed = handle.changed() => if changed.is_err() { return now },
                () = &mut over => return Snapshot::take(&handle),
                () = tokio::time::sleep(TICK) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
