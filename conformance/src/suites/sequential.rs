//! Single calls in sequence that a probe does not make, each with its required answer and its required effect.

use std::time::Duration;

use bytes::Bytes;
use leaderelection::StoreErrorKind;
use leaderelection::implement::Precondition::{self, Absent, Matches};
use leaderelection::implement::{MAX_BODY_BYTES, VersionedObject};
use tokio::time::Instant;

use crate::contract::{AGE, BODY_SIZE, Breach, VERSION};
use crate::probe::{Finding, Prober};

/// The resolution of the times in HTTP.
const GRAIN: Duration = Duration::from_secs(1);

impl Prober {
    /// Creates an object with the body that it has: a repeated create must not mistake the first create for its own.
    pub(super) async fn create_equal(&self) -> Finding<()> {
        let key = &self.new_key("create-equal");
        let first = self.write(key, "first", &Absent).await?;
        let second = self.put(key, "first", &Absent).await;
        self.refused("a second create with an equal body", key, second, Some(&first)).await
    }

    pub(super) async fn deletions(&self, deletes: bool) -> Finding<()> {
        let (key, missing) = (&self.new_key("deletions"), &self.new_key("missing"));
        let first = self.write(key, "first", &Absent).await?;
        let second = self.write(key, "second", &Matches(first.version.clone())).await?;
        if deletes {
            // A version that this store has issued, but for another object.
            self.delete_refused("deletion of a missing object", missing, &second.version, None).await?;
        }
        self.remove(key, &second, deletes).await?;
        if deletes {
            self.delete_refused("second deletion", key, &second.version, None).await?;
        }
        let late = self.put(key, "third", &Matches(second.version.clone())).await;
        self.refused("an update of a deleted object", key, late, None).await?;

        let again = self.write(key, "third", &Absent).await?.version;
        let is_new = again != first.version && again != second.version;
        let what = format!("created anew, an object has the version {again} a second time");
        Ok(Breach::unless(is_new, what, VERSION)?)
    }

    /// Deletes an object by its version, if the store can.
    pub(super) async fn remove(&self, key: &str, object: &VersionedObject, deletes: bool) -> Finding<()> {
        match deletes {
            true => self.delete(key, &object.version).await?,
            false => self.discard(key).await?,
        }
        self.shows("its deletion", key, None).await
    }

    pub(super) async fn versions(&self) -> Finding<()> {
        let key = &self.new_key("versions");
        // These bodies are like two records that differ only in their write id.
        let (a, b) = (r#"{"holderIdentity":"a","writeId":"1"}"#, r#"{"holderIdentity":"a","writeId":"2"}"#);
        let first = self.write(key, a, &Absent).await?.version;
        let second = self.write(key, b, &Matches(first.clone())).await?.version;
        Breach::unless(first != second, format!("two bodies have the version {first}"), VERSION)?;
        let third = self.write(key, a, &Matches(second.clone())).await?.version;
        Ok(Breach::unless(second != third, format!("two bodies have the version {second}"), VERSION)?)
    }

    pub(super) async fn body_sizes(&self) -> Finding<()> {
        // The largest body contains every byte value, zeros included, and is not valid text.
        let largest: Vec<u8> = (0..MAX_BODY_BYTES).map(|byte| (byte % 251) as u8).collect();
        let too_large = Bytes::from([&largest[..], b"!"].concat());
        let key = &self.new_key("sizes");
        self.size_refused("a write of an empty body", key, Bytes::new(), &Absent).await?;
        self.size_refused("a write of too large a body", key, too_large.clone(), &Absent).await?;
        self.shows("writes of impossible bodies", key, None).await?;
        let large = self.write(key, largest, &Absent).await?;
        let small = self.write(key, "1", &Matches(large.version)).await?;
        self.size_refused("an update with too large a body", key, too_large, &Matches(small.version)).await
    }

    async fn size_refused(&self, what: &str, key: &str, body: Bytes, condition: &Precondition) -> Finding<()> {
        let answer = match self.put(key, body, condition).await {
            Err(error) if error.kind() == StoreErrorKind::Fatal => return Ok(()),
            Err(error) => format!("answered {:?}", error.kind()),
            Ok(_) => "accepted".to_owned(),
        };
        Err(Breach::new(format!("{what} was {answer}"), BODY_SIZE).into())
    }

    /// Requires that no version is said to be older than it is. A store that tells no ages needs no time for this check.
    pub(super) async fn ages(&self) -> Finding<()> {
        let key = &self.new_key("age");
        let mut condition = Absent;
        for (body, after) in [("first", "its creation"), ("second", "an update")] {
            let sent = Instant::now();
            let version = self.put(key, body, &condition).await?.version;
            let Some(age) = self.get(key).await?.and_then(|object| object.age) else { return Ok(()) };
            let most = sent.elapsed() + GRAIN;
            Breach::unless(age <= most, format!("at most {most:?} after {after}, its age is {age:?}"), AGE)?;
            if condition == Absent {
                // The object has to be older than the second version may be said to be.
                self.sleep(GRAIN * 2).await;
            }
            condition = Matches(version);
        }
        Ok(())
    }

    /// Writes, and requires a read to show it.
    pub(super) async fn write(
        &self,
        key: &str,
        body: impl Into<Bytes>,
        condition: &Precondition,
    ) -> Finding<VersionedObject> {
        let written = self.put(key, body, condition).await?;
        self.shows("a write", key, Some(&written)).await?;
        Ok(written)
    }

    async fn shows(&self, after: &str, key: &str, expected: Option<&VersionedObject>) -> Finding<()> {
        Ok(self.expect(after, self.get(key).await?.as_ref(), expected)?)
    }
}
