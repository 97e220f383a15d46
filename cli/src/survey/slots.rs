//! The slots of `run --slots`: numbered locks below the URL that people know, at which there is no object.

use std::time::Duration;

use crate::lock::LockUrl;
use crate::survey::{Row, Survey};

/// Looks at the slots below `url`. Returns none if the URL is no lock of slots, or if the store does not list them: then this
/// process knows no more than that there is no object. Leases are not listed: their list would be that of the whole namespace.
pub(crate) async fn below(url: &LockUrl, request_timeout: Duration) -> Vec<Row> {
    let Some(slots) = url.slots() else { return Vec::new() };
    let Ok(mut survey) = Survey::open(slots, request_timeout).await else { return Vec::new() };
    match survey.look(|_, _| {}).await {
        Ok(()) => survey.locks(),
        Err(_) => Vec::new(),
    }
}

/// Returns the slots in words: `slot 0 is held by node-1, slot 1 by nobody`.
pub(crate) fn in_words(slots: &[Row]) -> String {
    let holder = |row: &Row| row.view.holder.clone().filter(|_| row.is_held()).unwrap_or_else(|| "nobody".to_owned());
    let all: Vec<_> = slots.iter().map(|row| format!("slot {} by {}", row.key, holder(row))).collect();
    all.join(", ").replacen(" by", " is held by", 1)
}
