//! The slots of `run --slots`: numbered locks below the URL that people know, at which there is no object.

use std::time::Duration;

use crate::lock::LockUrl;
use crate::survey::{Row, Scanner};

/// Looks at the slots below `url`. Returns none if the URL is no lock of slots, or if the store does not list them: then this
/// process knows no more than that there is no object. Leases are not listed: their list would be that of the whole namespace.
pub(crate) async fn below(url: &LockUrl, request_timeout: Duration) -> Vec<Row> {
    let Some(slots) = url.slots() else { return Vec::new() };
    let Ok(mut survey) = Scanner::open(slots, request_timeout).await else { return Vec::new() };
    match survey.scan(|_, _| {}).await {
        Ok(()) => survey.locks(),
        Err(_) => Vec::new(),
    }
}

/// Returns the slots in words: `slot 0: node-1 leads; slot 1: nobody leads: the lease is free`.
pub(crate) fn in_words(slots: &[Row]) -> String {
    slots.iter().map(|row| format!("slot {}: {}", row.key, row.view)).collect::<Vec<_>>().join("; ")
}
