//! A lock, as all looks together show it.

use std::time::Duration;

use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use serde::Serialize;

use super::object::{Object, Seen};
use super::standing::Standing;
use crate::cause::Cause;
use crate::lock::PrefixUrl;
use crate::lock::view::{SessionObject, View, as_seconds};
use crate::survey::doubt::Doubt;
use crate::survey::observe::Age;

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
    /// The age of the last renewal by the store's clock; `None` if the store does not tell it, or if nobody holds the lease.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_seconds", rename = "storeAgeSeconds")]
    pub(crate) store_age: Option<Duration>,
    /// The moment at which the lease was first seen as it is now, and its age then by the store's clock.
    #[serde(skip)]
    pub(crate) first_seen: Option<(LocalInstant, Duration)>,
    /// A sign that the holder is dead, if no renewal was seen.
    #[serde(skip)]
    pub(crate) doubt: Option<Doubt>,
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
        let store_age = lease.and(seen).and_then(Seen::store_age);
        let was_seen_to_renew = age.is_some_and(|age| age.left.is_some());
        let doubt = view.doubt(store_age, SystemClock.wall_time()).filter(|_| !was_seen_to_renew);
        let standing = Standing::of(&view, age.as_ref(), doubt);
        Self {
            key: prefix.shown(lock.target.key()).to_owned(),
            view,
            standing,
            observed: age.filter(|_| watched.is_some()),
            store_age,
            first_seen: seen.map(|seen| (seen.first_seen_at, seen.age_at_first.unwrap_or_default())),
            doubt,
        }
    }

    /// Returns `true` if somebody holds the lock who is not known to be dead.
    pub(crate) fn is_held(&self) -> bool {
        self.view.holder.is_some() && self.standing != Standing::Expired
    }

    /// The time for which the lease has been as it is now: what the looks have seen, and what the store knew before.
    pub(crate) fn unchanged_for(&self) -> Duration {
        let since = |(seen_at, before)| SystemClock.now().saturating_since(seen_at).saturating_add(before);
        self.first_seen.map(since).unwrap_or_default()
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
        Some(Object { read: Err(error), .. }) => {
            View { problem: Some(error.in_full()), cause: Some(Cause::of(error.kind())), ..view }
        }
        None => view,
    }
}

fn age(lease: Duration, seen: &Seen, watched: Option<LocalInstant>) -> Age {
    let unchanged_for = seen.unchanged_for();
    let expired = unchanged_for >= lease;
    Age {
        watched_for: watched.map(|began| seen.last_seen_at.saturating_since(began)),
        unchanged_for,
        left: (seen.was_seen_to_change && !expired).then(|| lease.saturating_sub(unchanged_for)),
        expired,
    }
}
