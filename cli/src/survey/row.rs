//! A lock, as all looks together show it.

use std::time::Duration;

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use serde::Serialize;

use super::object::{Object, Seen};
use super::standing::Standing;
use crate::lock::PrefixUrl;
use crate::observe::Age;
use crate::view::{SessionObject, View};

/// A lock, with what is known about its lease.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    /// The key as people see it.
    #[serde(skip)]
    pub(crate) key: String,
    #[serde(flatten)]
    pub(crate) view: View,
    pub(crate) standing: Standing,
    /// The age of the lease; `None` after a single look, or if the lock has no holder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) observed: Option<Age>,
    /// The moment at which the lease was first seen as it is now.
    #[serde(skip)]
    pub(crate) first_seen_at: Option<LocalInstant>,
}

impl Row {
    /// `watched` is the beginning of the watch, if there was more than one look.
    pub(super) fn new(
        prefix: &PrefixUrl,
        lock: &Object,
        session: Option<&Object>,
        watched: Option<LocalInstant>,
    ) -> Self {
        let view = view(prefix, lock, session);
        let lease = view.lease().filter(|_| view.holder.is_some());
        let seen = if view.session.is_some() { session.and_then(Object::seen) } else { lock.seen() };
        let age = lease.zip(seen).map(|(lease, seen)| age(lease, seen, watched));
        let standing = Standing::of(&view, age.as_ref(), SystemClock.wall_time());
        Self {
            key: prefix.shown(lock.target.key()).to_owned(),
            view,
            standing,
            observed: age.filter(|_| watched.is_some()),
            first_seen_at: seen.map(|seen| seen.first_seen_at),
        }
    }

    /// Returns `true` if further looks would show nothing new.
    pub(crate) fn is_conclusive(&self) -> bool {
        !matches!(self.standing, Standing::Held | Standing::Doubtful | Standing::HandingOver)
            || self.observed.is_some_and(|age| age.expired || age.left.is_some())
    }
}

/// The view of a lock. An object that cannot be read does not hide the others.
fn view(prefix: &PrefixUrl, lock: &Object, session: Option<&Object>) -> View {
    let url = prefix.at(lock.target.key());
    let view = View::of_read(&url, lock.read.as_ref().map(Option::as_ref));
    match session {
        Some(Object { target, read: Ok(found), .. }) => {
            view.with_session(SessionObject::of(&prefix.at(target.key()), found.as_ref()))
        }
        Some(Object { read: Err(error), .. }) => View { problem: Some(error.in_full()), ..view },
        None => view,
    }
}

fn age(lease: Duration, seen: &Seen, watched: Option<LocalInstant>) -> Age {
    let unchanged_for = seen.last_seen_at.saturating_since(seen.first_seen_at);
    let expired = unchanged_for >= lease;
    Age {
        watched_for: watched.map(|began| seen.last_seen_at.saturating_since(began)),
        unchanged_for: Some(unchanged_for),
        left: (seen.was_seen_to_change && !expired).then(|| lease.saturating_sub(unchanged_for)),
        expired,
    }
}
