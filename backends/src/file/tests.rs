//! Writers that stop between two steps, and the effects of a crash between two steps.

use std::fs;
use std::pin::pin;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime};

use leaderelection::StoreErrorKind;
use leaderelection::implement::{ConditionalStore as _, Precondition, Version, VersionedObject};
use tempfile::TempDir;
use tokio::time::timeout;

use super::FileStore;
use super::draft::Draft;
use super::object::{DELETED, ObjectDirectory};

/// A directory of its own with one object, shared by any number of simulated processes.
struct World {
    directory: TempDir,
}

impl World {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn object(&self) -> ObjectDirectory {
        ObjectDirectory::new(self.directory.path(), "key", "file:///key".to_owned())
    }

    /// Writes `bodies` one after the other as another process; an empty body deletes.
    fn others_write(&self, bodies: &[&str]) {
        for body in bodies {
            let current = self.object().read().unwrap();
            let precondition = current.map_or(Precondition::Absent, |found| Precondition::Matches(found.version));
            self.object().write(body.as_bytes(), &precondition).unwrap();
        }
    }

    /// A writer that reads the object and prepares a write, and stops before it publishes.
    fn stopped_writer(&self, body: &str) -> (ObjectDirectory, Draft, u64) {
        let object = self.object();
        let current = object.read().unwrap();
        let precondition = current.map_or(Precondition::Absent, |found| Precondition::Matches(found.version));
        let generation = object.next_generation(&precondition).unwrap();
        let draft = object.draft(body.as_bytes()).unwrap();
        (object, draft, generation)
    }

    fn expect(&self, body: &str, version: u64) {
        let found = self.object().read().unwrap();
        let version = Version::new(version.to_string());
        assert_eq!(found.map(|found| found.with_age(None)), Some(VersionedObject::new(body.to_owned(), version)));
    }

    /// The files on the disk, drafts last.
    fn files(&self) -> Vec<String> {
        let names = |path: &str| {
            let entries = fs::read_dir(self.directory.path().join(path)).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let mut files = names("key/@");
        files.retain(|name| name != "tmp");
        files.extend(names("key/@/tmp").iter().map(|_| "draft".to_owned()));
        files
    }
}

#[test]
fn an_idle_lock_is_one_file() {
    let world = World::new();
    world.others_write(&["a", "b", "c"]);
    world.expect("c", 3);
    assert_eq!(world.files(), ["3"]);
    world.others_write(&[""]);
    assert_eq!(world.object().read().unwrap(), None);
    assert_eq!(world.files(), ["4"], "the number of a deletion is never used again");
    world.others_write(&["d"]);
    world.expect("d", 5);
}

#[test]
fn a_writer_stopped_before_its_link_meets_the_winner() {
    let world = World::new();
    world.others_write(&["a"]);
    let (object, draft, generation) = world.stopped_writer("late");
    world.others_write(&["b"]);
    assert_eq!(object.publish(&draft, generation).unwrap_err().kind(), StoreErrorKind::Conflict);
    drop(draft);
    world.expect("b", 2);
    assert_eq!(world.files(), ["2"]);
}

/// The one case in which `link` alone would let two writers win.
#[test]
fn a_writer_stopped_before_its_link_does_not_win_a_reused_number() {
    let world = World::new();
    world.others_write(&["a"]);
    let (object, draft, generation) = world.stopped_writer("late");
    world.others_write(&["b", "c"]);
    object.publish(&draft, generation).unwrap();
    world.expect("c", 3);
    assert_eq!(object.confirm(draft, generation).unwrap_err().kind(), StoreErrorKind::Ambiguous);
    world.expect("c", 3);
    assert_eq!(world.files(), ["2", "3"]);
    world.others_write(&["d"]);
    assert_eq!(world.files(), ["4"], "the next writer cleans up");
}

#[test]
fn the_same_after_a_deletion() {
    let world = World::new();
    let (creator, draft, generation) = world.stopped_writer("late");
    world.others_write(&["a", ""]);
    creator.publish(&draft, generation).unwrap();
    assert_eq!(world.object().read().unwrap(), None);
    assert_eq!(creator.confirm(draft, generation).unwrap_err().kind(), StoreErrorKind::Ambiguous);
    assert_eq!(world.object().read().unwrap(), None);
    world.others_write(&["b"]);
    world.expect("b", 3);
}

#[test]
fn a_writer_stopped_after_its_link_has_written() {
    let world = World::new();
    world.others_write(&["a"]);
    let (object, draft, generation) = world.stopped_writer("b");
    object.publish(&draft, generation).unwrap();
    world.expect("b", 2);
    world.others_write(&["c"]);
    assert_eq!(
        object.confirm(draft, generation).unwrap_err().kind(),
        StoreErrorKind::Ambiguous,
        "it wrote, but cannot know that"
    );
    world.expect("c", 3);
}

#[test]
fn a_crash_before_the_link_leaves_the_old_object() {
    let world = World::new();
    world.others_write(&["a"]);
    let (_, draft, _) = world.stopped_writer("never published");
    std::mem::forget(draft);
    assert_eq!(world.files(), ["1", "draft"]);
    world.expect("a", 1);
    world.others_write(&["b"]);
    world.expect("b", 2);
}

#[test]
fn a_crash_after_the_link_leaves_the_new_object() {
    let world = World::new();
    world.others_write(&["a"]);
    let (object, draft, generation) = world.stopped_writer("b");
    object.publish(&draft, generation).unwrap();
    std::mem::forget(draft);
    assert_eq!(world.files(), ["1", "2", "draft"]);
    world.expect("b", 2);
    let stale = object.write(b"c", &Precondition::Matches(Version::new("1"))).unwrap_err();
    assert_eq!(stale.kind(), StoreErrorKind::Conflict);
    world.others_write(&["c"]);
    world.expect("c", 3);
    assert_eq!(world.files(), ["3", "draft"]);
}

#[test]
fn abandoned_drafts_are_swept_and_fresh_ones_are_not() {
    let world = World::new();
    world.others_write(&["a"]);
    let (_, abandoned, _) = world.stopped_writer("abandoned");
    let (object, stopped, generation) = world.stopped_writer("stopped");
    abandoned.set_modified(SystemTime::UNIX_EPOCH);
    std::mem::forget(abandoned);
    for _ in 0..63 {
        world.others_write(&["b"]);
    }
    assert_eq!(world.files(), ["64", "draft"]);
    object.publish(&stopped, generation).unwrap();
    assert_eq!(object.confirm(stopped, generation).unwrap_err().kind(), StoreErrorKind::Ambiguous);
}

#[test]
fn a_writer_whose_draft_was_swept_has_not_written() {
    let world = World::new();
    world.others_write(&["a"]);
    let (object, draft, generation) = world.stopped_writer("late");
    draft.remove();
    assert_eq!(object.publish(&draft, generation).unwrap_err().kind(), StoreErrorKind::Rejected);
    world.expect("a", 1);
}

#[test]
fn a_reader_that_comes_too_late_looks_again() {
    let world = World::new();
    world.others_write(&["a"]);
    thread::scope(|scope| {
        let writer = scope.spawn(|| world.others_write(&["b"; 200]));
        while !writer.is_finished() {
            world.object().read().unwrap().unwrap();
        }
    });
    world.expect("b", 201);
}

#[test]
fn versions_that_this_store_never_gave_out_match_nothing() {
    let world = World::new();
    world.others_write(&["a", "b", ""]);
    for version in ["3", "03", "2", "4", "0", "", "x", "-3", "18446744073709551615"] {
        let precondition = Precondition::Matches(Version::new(version));
        let error = world.object().write(DELETED, &precondition).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Conflict, "{version:?}");
    }
}

#[test]
fn the_last_version_is_not_the_first_again() {
    let world = World::new();
    world.others_write(&["a"]);
    fs::write(world.directory.path().join("key/@/18446744073709551615"), "last").unwrap();
    world.expect("last", u64::MAX);
    let precondition = Precondition::Matches(Version::new(u64::MAX.to_string()));
    assert_eq!(world.object().write(b"b", &precondition).unwrap_err().kind(), StoreErrorKind::Fatal);
}

#[tokio::test]
async fn no_call_begins_while_another_one_hangs() {
    let world = World::new();
    let store = FileStore::new(world.directory.path());
    let (disk, hangs) = mpsc::channel::<()>();
    let mut hung = pin!(store.blocking("a call", move || {
        let _ = hangs.recv();
        Ok(())
    }));
    // The first poll begins the call, so that the call is overdue by the end of the next timeout.
    timeout(Duration::ZERO, &mut hung).await.unwrap_err();
    timeout(Duration::from_millis(1100), hung).await.unwrap_err();
    for _ in 0..3 {
        // Clones share the disk, and wait without a thread.
        timeout(Duration::from_millis(50), store.clone().get("other")).await.unwrap_err();
    }
    drop(disk);
    assert_eq!(timeout(Duration::from_secs(60), store.get("key")).await.unwrap().unwrap(), None);
}
