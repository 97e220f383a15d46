//! The way to the API server, without which a leader reconciles nothing.

use std::time::Duration;

use kube::{Client, Error};
use thiserror::Error;
use tokio::time::{Instant, sleep, timeout};

/// The end of leadership of a replica that is cut off from the API server.
#[derive(Debug, Error)]
#[error("the API server has not answered for {0:?}, so another replica should lead; check the network of this pod")]
pub struct CutOff(Duration);

/// Asks the API server once in `pause`, and returns when there was no answer for `patience`.
///
/// A leader that is elected on a Lease would lose the Lease in this case. A leader that is elected on a bucket goes on to
/// renew, and nobody would reconcile.
pub(crate) async fn lost(client: &Client, patience: Duration, pause: Duration) -> CutOff {
    let mut answered = Instant::now();
    while answered.elapsed() < patience {
        let asked = timeout(patience.saturating_sub(answered.elapsed()), client.apiserver_version()).await;
        // A refusal is an answer, too: another replica would be refused as well.
        if let Ok(Ok(_) | Err(Error::Api(_))) = asked {
            answered = Instant::now();
        }
        sleep(pause).await;
    }
    CutOff(patience)
}
