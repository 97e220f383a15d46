//! A lock, as all polls together show it.

use std::time::Duration;

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use serde::Serialize;

use super::object::{Object, ObservedObject};
use crate::lock::PrefixUrl;
use crate::lock::status::{Age, LockStatus};
use crate::lock::view::{SessionObject, View, as_seconds};

/// A lock, with what is known about its lease.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    /// The key as people see it.
    #[serde(skip)]
    pub(crate) key: String,
    #[serde(flatten)]
    pub(crate) view: View,
    /// The age of the lease; `None` after a single poll, or if the lock has no holder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) observed: Option<Age>,
    /// The age of the last renewal by the store's clock; `None` if the store does not tell it, or if nobody holds the lease.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_seconds", rename = "storeAgeSeconds")]
    pub(crate) store_age: Option<Duration>,
    /// The time for which the polls have seen that the object is not a record.
    #[serde(skip)]
    pub(crate) unreadable_for: Option<Duration>,
}

impl Row {
    /// Creates the row of a lock that was read, with the ages of its lease.
    pub(super) fn new(key: String, view: View, age: Option<Age>, store_age: Option<Duration>) -> Self {
        let is_held = view.holder.is_some();
        let (observed, store_age) = (age.filter(|_| is_held), store_age.filter(|_| is_held));
        let view = view.aged(observed.as_ref(), store_age, SystemClock.wall_time());
        let is_expired = view.status == LockStatus::Expired;
        let observed = observed.map(|age| if is_expired { age.over() } else { age });
        Self { key, view, observed, store_age, unreadable_for: None }
    }

    /// `watched` is the beginning of the watch, if there was more than one poll.
    pub(super) fn of_object(
        prefix: &PrefixUrl,
        lock: &Object,
        session: Option<&Object>,
        watched: Option<LocalInstant>,
    ) -> Self {
        let view = view(prefix, lock, session);
        let seen = if view.session.is_some() { session.and_then(Object::seen) } else { lock.seen() };
        let age = view.lease().zip(seen).map(|(lease, seen)| {
            let now = seen.last_seen_at;
            let watched_for = watched.map(|began| now.saturating_since(began));
            Age::new(watched_for, seen.unchanged_for(), lease, seen.was_seen_to_change)
        });
        let row =
            Self::new(prefix.shown(lock.target.key()).to_owned(), view, age, seen.and_then(ObservedObject::store_age));
        Self { observed: row.observed.filter(|_| watched.is_some()), unreadable_for: lock.unreadable_for(), ..row }
    }

    /// Returns `true` if somebody holds the lock who is not known to be dead.
    pub(crate) fn is_held(&self) -> bool {
        self.view.holder.is_some() && self.view.status != LockStatus::Expired
    }

    /// The time for which the lease, or an object that is not a record, has been as it is now: what the store knows, or else what the polls have seen.
    pub(crate) fn unchanged_for(&self) -> Duration {
        let seen = self.observed.map(|age| age.unchanged_for);
        self.store_age.or(seen).or(self.unreadable_for).unwrap_or_default()
    }

    /// Returns `true` if further polls would show nothing new.
    pub(crate) fn is_conclusive(&self) -> bool {
        !matches!(self.view.status, LockStatus::Held | LockStatus::Doubtful | LockStatus::HandingOver)
            || self.observed.is_some_and(|age| age.left.is_some())
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
