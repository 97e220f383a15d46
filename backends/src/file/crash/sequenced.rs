//! Processes that die while they write to a sequenced lock in a directory: between two steps on the disk, and between two
//! requests.

use std::path::Path;

use leaderelection::StoreErrorKind;
use leaderelection::implement::{ConditionalStore as _, Precondition, Version};
use leaderelection_sequenced::{CreateOnlyStore as _, SequencedStore};
use tokio::runtime::Builder;

use super::tests::{DIED, die, write_and_die};
use crate::file::CreateOnlyDirectory;

const TEST: &str = "file::crash::sequenced::a_death_between_steps_of_a_sequenced_write_spoils_nothing";
const KEY: &str = "locks/key";

type Store = SequencedStore<CreateOnlyDirectory>;

fn store(directory: &Path, keep: u64) -> Store {
    SequencedStore::new(CreateOnlyDirectory::new(directory)).keep(keep)
}

/// Writes as the next writer that reads the lock would; an empty body deletes.
async fn write(store: &Store, body: &str) {
    let found = store.get(KEY).await.unwrap();
    let condition = found.as_ref().map_or(Precondition::Absent, |found| Precondition::Matches(found.version.clone()));
    match found {
        Some(found) if body.is_empty() => store.delete(KEY, Some(&found.version)).await.unwrap(),
        _ => drop(store.put(KEY, body.to_owned().into(), &condition).await.unwrap()),
    }
}

/// The body and the version that a process sees which has just begun.
async fn body(directory: &Path, nth: u32) -> Option<(String, u64)> {
    let found = store(directory, 1).get(KEY).await.unwrap_or_else(|error| panic!("point {nth}: {error}"))?;
    Some((String::from_utf8(found.body.to_vec()).unwrap(), found.version.as_str().parse().unwrap()))
}

/// Lets a process die at every point of a write of `next`, after the given writes. Returns the number of points.
async fn dies_everywhere(before_it: &[&str], next: &str) -> u32 {
    for nth in 1.. {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        for earlier in before_it {
            // All of them stay, so that the process that dies has something to remove.
            write(&store(path, 100), earlier).await;
        }
        let before = body(path, nth).await;
        let status = write_and_die(TEST, path, next, nth);

        let after = body(path, nth).await;
        let newest = before_it.len() as u64;
        let written = (!next.is_empty()).then(|| (next.to_owned(), newest + 1));
        match status.code() {
            Some(0) => assert_eq!(after, written, "an acknowledged write is there"),
            Some(DIED) => assert!(after == before || after == written, "point {nth}: {after:?}"),
            _ => panic!("point {nth}: {status}"),
        }
        // The store goes on, and no version comes back.
        let last = if after == written && after != before { newest + 1 } else { newest };
        let other = store(path, 1);
        write(&other, "of the next writer").await;
        assert_eq!(body(path, nth).await, Some(("of the next writer".to_owned(), last + 1)), "point {nth}");
        let stale = Precondition::Matches(Version::new(last.to_string()));
        let error = other.put(KEY, "late".into(), &stale).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Conflict, "point {nth}");
        let left = other.objects().list("", None).await.unwrap();
        assert_eq!(left.len(), 1, "point {nth}: {left:?}");
        if status.success() {
            return nth - 1;
        }
    }
    unreachable!("a write has a last point")
}

#[test]
fn a_death_between_steps_of_a_sequenced_write_spoils_nothing() {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    die(|directory, body| runtime.block_on(write(&store(directory, 1), body)));
    runtime.block_on(async {
        let create = dies_everywhere(&[], "the first").await;
        let update = dies_everywhere(&["one", "two", "three"], "an update").await;
        let delete = dies_everywhere(&["one", "two", "three"], "").await;
        let again = dies_everywhere(&["one", "two", ""], "after a deletion").await;
        // The listings before and after, the steps of the creation, and the removals.
        assert!(create >= 8 && update >= 11 && delete >= 11, "{create}, {update} and {delete} points");
        assert!(again >= 11, "{again} points");
    });
}
