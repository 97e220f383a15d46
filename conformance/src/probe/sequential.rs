//! Single calls in sequence: the store must refuse each of them and leave the object unchanged.

use leaderelection::implement::{Precondition, Version, VersionedObject};
use leaderelection::{StoreError, StoreErrorKind};

use super::calls::Prober;
use super::check::{Finding, Stopped};
use crate::contract::{Breach, CONFLICT, DELETE, LINEARIZABLE_READ, VERSION};

const FIRST: &str = "the first write of a probe";
const SECOND: &str = "the second write of a probe";
const REFUSED: &str = "a write of a probe that must be refused";

impl Prober {
    pub(super) async fn create_twice(&self) -> Finding {
        let key = &self.new_key("create-twice");
        // A cache on the way may keep the absence of an object, and show it after the create. A store that cannot say
        // that an object is missing is judged by its writes first.
        if let Ok(found) = self.call(key, self.store.get(key)).await {
            self.expect("no write", found.as_ref(), None)?;
        }
        let first = self.put_rightly(key, FIRST, &Precondition::Absent).await?;
        let second = self.put(key, REFUSED, &Precondition::Absent).await;
        self.refused("a second create", key, second, Some(&first)).await?;
        Ok("a second create failed with Conflict, and changed nothing".to_owned())
    }

    pub(super) async fn stale_update(&self) -> Finding {
        let key = &self.new_key("stale-update");
        let (first, second) = self.written_twice(key).await?;
        let stale = self.put(key, REFUSED, &Precondition::Matches(first.version)).await;
        self.refused("a stale update", key, stale, Some(&second)).await?;
        Ok("a stale update failed with Conflict, and changed nothing".to_owned())
    }

    pub(super) async fn update_missing(&self) -> Finding {
        // A version that this store has issued, but for another object.
        let other = self.put_rightly(&self.new_key("update-other"), FIRST, &Precondition::Absent).await?;
        let key = &self.new_key("update-missing");
        let update = self.put(key, REFUSED, &Precondition::Matches(other.version)).await;
        self.refused("an update of a missing object", key, update, None).await?;
        Ok("an update of a missing object failed with Conflict, and created nothing".to_owned())
    }

    pub(super) async fn stale_delete(&self) -> Finding {
        let key = &self.new_key("stale-delete");
        let (first, second) = self.written_twice(key).await?;
        self.delete_refused("stale deletion", key, &first.version, Some(&second)).await?;
        Ok("a stale deletion failed with Conflict, and changed nothing".to_owned())
    }

    /// Checks that a deletion is refused, and that the object is still `expected`.
    pub(crate) async fn delete_refused(
        &self,
        what: &str,
        key: &str,
        version: &Version,
        expected: Option<&VersionedObject>,
    ) -> Finding<()> {
        let Err(error) = self.delete(key, version).await else {
            return Err(Breach::new(format!("a {what} was accepted"), DELETE).into());
        };
        let found = self.get(key).await?;
        let done = format!("a {what} failed with {:?}, but deleted the object", error.kind());
        Breach::unless(found.is_some() || expected.is_none(), done, DELETE)?;
        self.expect(&format!("a refused {what}"), found.as_ref(), expected)?;
        conflict(error)
    }

    /// Writes an object twice and returns both states.
    async fn written_twice(&self, key: &str) -> Finding<(VersionedObject, VersionedObject)> {
        let first = self.put_rightly(key, FIRST, &Precondition::Absent).await?;
        self.expect("a create", self.get(key).await?.as_ref(), Some(&first))?;
        let second = self.put_rightly(key, SECOND, &Precondition::Matches(first.version.clone())).await?;
        let what = format!("two contents have the version {}", first.version);
        Breach::unless(first.version != second.version, what, VERSION)?;
        self.expect("an update", self.get(key).await?.as_ref(), Some(&second))?;
        Ok((first, second))
    }

    /// Checks that the write `what` was refused, and that the object is still `expected`.
    pub(crate) async fn refused(
        &self,
        what: &str,
        key: &str,
        answer: Result<VersionedObject, StoreError>,
        expected: Option<&VersionedObject>,
    ) -> Finding<()> {
        let Err(error) = answer else { return Err(Breach::new(format!("{what} was accepted"), CONFLICT).into()) };
        let found = self.get(key).await?;
        let written = found.as_ref().is_some_and(|found| found.body == REFUSED);
        Breach::unless(!written, format!("{what} failed with {:?}, but was written", error.kind()), CONFLICT)?;
        self.expect(&format!("{what} that was refused"), found.as_ref(), expected)?;
        conflict(error)
    }

    pub(crate) fn expect(
        &self,
        after: &str,
        found: Option<&VersionedObject>,
        expected: Option<&VersionedObject>,
    ) -> Result<(), Breach> {
        let what = format!("after {after}, a read shows {} and not {}", shown(found), shown(expected));
        // The age of an object is another at every read.
        let content = |object: &VersionedObject| (object.body.clone(), object.version.clone());
        Breach::unless(found.map(content) == expected.map(content), what, LINEARIZABLE_READ)
    }
}

/// Accepts only a conflict. After any other error, the write may still take effect, or the store might have
/// accepted it.
fn conflict(error: StoreError) -> Finding<()> {
    match error.kind() {
        StoreErrorKind::Conflict => Ok(()),
        _ => Err(Stopped::Unclear(error)),
    }
}

pub(super) fn shown(object: Option<&VersionedObject>) -> String {
    object.map_or("no object".to_owned(), |VersionedObject { body, version, .. }| {
        let body: String = String::from_utf8_lossy(body).chars().take(60).collect();
        format!("{body:?} at version {version}")
    })
}
