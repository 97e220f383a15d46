//! The changes of the leader, as server-sent events.

use std::sync::Arc;

use axum::response::sse::Event;
use futures_util::Stream;
use futures_util::stream::unfold;

use super::facts::Facts;
use super::wait::TICK;
use crate::output::escape::plain_json;

/// Returns the answer of /leader now, and again at each change of the leader, of the token, or of the state of this process.
pub(super) fn stream(facts: Arc<Facts>) -> impl Stream<Item = serde_json::Result<Event>> {
    unfold((facts.handle.clone(), None), move |(mut handle, known)| {
        let facts = Arc::clone(&facts);
        async move {
            loop {
                let told = facts.told();
                let essence = told.essence();
                if known.as_ref() != Some(&essence) {
                    let text = serde_json::to_string(&told).map(|text| plain_json(&text));
                    let event = text.map(|text| Event::default().event("leader").data(text));
                    return Some((event, (handle, Some(essence))));
                }
                tokio::select! {
                    biased;
                    changed = handle.changed() => changed.ok()?,
                    () = facts.draining.cancelled(), if !told.draining => {}
                    () = facts.shutdown.cancelled() => return None,
                    // Nothing tells of a lease that expires.
                    () = tokio::time::sleep(TICK) => {}
                }
            }
        }
    })
}
