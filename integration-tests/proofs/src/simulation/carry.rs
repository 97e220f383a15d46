//! The unreliable way of a request to the store, and of its answer back.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::election::Failure;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::faults::{CONFLICT, Falsehood, Fate, Link, Outage, Reply};
use super::names::Client;
use super::world::World;

/// The answer to a request.
pub(super) type Answer<T> = Result<T, Failure>;

/// A request of one kind to the store, and its effect.
pub(super) trait Request: Clone + Send + Sync + 'static {
    /// The result of a request that does not fail.
    type Done: Send + 'static;

    /// The world, and the sender of the request.
    fn way(&self) -> (&Arc<World>, Client);

    /// Returns `true` if the request changes nothing.
    fn is_read(&self) -> bool;

    /// Carries out the request.
    fn apply(&self) -> Answer<Self::Done>;

    /// Returns what a read shows instead of the newest state; `None` for a write.
    fn show_false(&self, age: Option<usize>) -> Option<Self::Done>;

    /// Records an answer that arrives, whether its sender still waits or not.
    fn answered(&self, answer: &Answer<Self::Done>, honest: bool);
}

/// Sends a request, and waits for its answer, which may not come.
pub(super) async fn send<R: Request>(request: R, fate: Fate) -> Answer<R::Done> {
    let (sender, receiver) = oneshot::channel();
    // A task of its own carries the request, because the request stays in flight if its sender gives up or dies.
    tokio::spawn(carry(request, fate, sender));
    match receiver.await {
        Ok(answer) => answer,
        Err(_) => std::future::pending().await,
    }
}

async fn carry<R: Request>(request: R, fate: Fate, sender: oneshot::Sender<Answer<R::Done>>) {
    let ((world, client), Some(arrives)) = (request.way(), fate.arrives) else { return };
    travel(arrives).await;
    let (answer, honest) = match (world.outage(), fate.reply) {
        (Some(Outage::Silent), _) => return,
        (Some(Outage::Refusing(refusal)), _) | (None, Reply::Refuse(refusal)) => (Err(refusal), false),
        (Some(Outage::Lying(refusal)), _) | (None, Reply::Lie(refusal)) => {
            let _ = request.apply();
            (Err(refusal), false)
        }
        (None, Reply::Honest) => (request.apply(), true),
        (None, Reply::OfSecond) => {
            let _ = request.apply();
            travel(fate.again.unwrap_or_default()).await;
            (request.apply(), request.is_read())
        }
        (None, Reply::False(Falsehood { applied, age })) => {
            let shown = request.show_false(age);
            if shown.is_none() && applied {
                let _ = request.apply();
            }
            (shown.ok_or(CONFLICT), false)
        }
    };
    if let (Reply::Honest, Some(again)) = (fate.reply, fate.again) {
        let copy = request.clone();
        tokio::spawn(async move {
            travel(again).await;
            let _ = copy.apply();
        });
    }
    let Some(returns) = fate.returns else { return };
    travel(returns).await;
    if world.link(client) != Link::Up {
        return;
    }
    request.answered(&answer, honest);
    // The sender may no longer wait for the answer.
    let _ = sender.send(answer);
}

async fn travel(time: Duration) {
    if !time.is_zero() {
        sleep(time).await;
    }
}
