//! A caller's request to stop.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use futures_util::FutureExt;
use futures_util::future::FusedFuture;
#[cfg(feature = "sessions")]
use tokio_util::sync::CancellationToken;

/// A caller's request to stop: any future, fused to remember its completion, and borrowed to avoid an allocation.
pub(crate) type Stop<'a> = Pin<&'a mut (dyn FusedFuture<Output = ()> + Send + 'static)>;

/// A request to stop that outlives the call.
pub(crate) type OwnedStop = Pin<Box<dyn FusedFuture<Output = ()> + Send + 'static>>;

pub(crate) fn owned(shutdown: impl Future<Output = ()> + Send + 'static) -> OwnedStop {
    Box::pin(shutdown.fuse())
}

/// Returns `true` if the caller has asked to stop. Otherwise, the task is woken when the caller asks.
pub(crate) async fn is_requested(mut stop: Stop<'_>) -> bool {
    poll_fn(|context| Poll::Ready(stop.is_terminated() || stop.as_mut().poll(context).is_ready())).await
}

/// Completes when the caller has asked to stop, even if an earlier poll has seen that: the fused future itself would
/// then stay pending. Cancellation safe.
pub(crate) async fn requested(mut stop: Stop<'_>) {
    poll_fn(|context| if stop.is_terminated() { Poll::Ready(()) } else { stop.as_mut().poll(context) }).await;
}

/// Runs `election` to its end. When `shutdown` completes, cancels `token`, which must make the election end.
#[cfg(feature = "sessions")]
pub(crate) async fn stop_by<T>(
    shutdown: impl Future<Output = ()>,
    token: &CancellationToken,
    election: impl Future<Output = T>,
) -> T {
    let mut election = std::pin::pin!(election);
    tokio::select! {
        biased;
        () = shutdown => token.cancel(),
        end = election.as_mut() => return end,
    }
    election.await
}
