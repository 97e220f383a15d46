//! The file store, on the file system of the temporary directory.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use leaderelection::implement::{
    ConditionalStore, ConditionalStoreExt, ListedObject, MAX_BODY_BYTES, Precondition, Version,
};
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_backends::file::{CreateOnlyDirectory, FileLock, FileStore};
use leaderelection_conformance::{Effort, ProbeConfig, Verdict, check_lock, check_store, probe};
use leaderelection_sequenced::CreateOnlyStore as _;
use tempfile::{tempdir, tempdir_in};
use tokio::runtime::{Builder, Runtime};

#[tokio::test(flavor = "multi_thread")]
async fn file_store_conforms() {
    let directory = tempdir().unwrap();
    check_store(FileStore::new(directory.path()), "suite", Effort::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn file_lock_conforms() {
    let directory = tempdir().unwrap();
    let store = FileStore::new(directory.path());
    check_lock(move |key, identity| FileLock::new(store.clone(), key, identity), Effort::default()).await;
}

#[tokio::test]
async fn the_directory_is_made_by_the_first_write() {
    let parent = tempdir().unwrap();
    let store = FileStore::new(parent.path().join("not/yet"));
    assert_eq!(store.get("key").await.unwrap(), None);
    assert_eq!(ListedObject::keys(store.list("").await.unwrap()), Vec::<String>::new());
    let error = store.put("key", "body".into(), &Precondition::Matches(Version::new("1"))).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Conflict);
    assert!(!store.directory().exists(), "a refused write leaves nothing behind");
    store.put("key", "body".into(), &Precondition::Absent).await.unwrap();
    assert_eq!(fs::read(store.directory().join("key/@/1")).unwrap(), b"body");
}

#[tokio::test]
async fn stores_of_one_directory_are_one_store() {
    let directory = tempdir().unwrap();
    let [one, other] = [FileStore::new(directory.path()), FileStore::new(directory.path())];
    let version = one.put("key", "one".into(), &Precondition::Absent).await.unwrap();
    assert_eq!(other.get("key").await.unwrap().unwrap().version, version);
    other.put("key", "other".into(), &Precondition::Matches(version.clone())).await.unwrap();
    let error = one.put("key", "late".into(), &Precondition::Matches(version)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Conflict);
    assert!(error.to_string().ends_with("/key changed: it has version 2"), "{error}");
}

#[tokio::test]
async fn somebody_elses_file_at_the_key_is_never_touched() {
    let directory = tempdir().unwrap();
    let photo = directory.path().join("photo.jpg");
    fs::write(&photo, "a photo").unwrap();
    let store = FileStore::new(directory.path());

    let error = store.get("photo.jpg").await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreadable);
    assert!(
        error
            .to_string()
            .contains("photo.jpg is a file, but a lock is a directory: another program made the file; move it"),
        "{error}"
    );
    for precondition in [Precondition::Absent, Precondition::Matches(Version::new("1"))] {
        let error = store.put("photo.jpg", "body".into(), &precondition).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Conflict);
    }
    assert_eq!(store.delete("photo.jpg", Some(&Version::new("1"))).await.unwrap_err().kind(), StoreErrorKind::Conflict);

    let pipe = directory.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    assert_eq!(store.get("pipe").await.unwrap_err().kind(), StoreErrorKind::Unreadable);

    let below = store.put("photo.jpg/key", "body".into(), &Precondition::Absent).await.unwrap_err();
    assert_eq!(below.kind(), StoreErrorKind::Fatal);
    let inside = FileStore::new(&photo).get("key").await.unwrap_err();
    assert_eq!(inside.kind(), StoreErrorKind::Fatal);
    assert!(inside.to_string().contains("a directory of the path is a file"), "{inside}");

    assert_eq!(ListedObject::keys(store.list("").await.unwrap()), Vec::<String>::new());
    assert_eq!(fs::read(&photo).unwrap(), b"a photo");
}

#[tokio::test]
async fn files_of_somebody_else_beside_the_object_are_ignored_and_left_alone() {
    let directory = tempdir().unwrap();
    let store = FileStore::new(directory.path());
    let version = store.put("key", "body".into(), &Precondition::Absent).await.unwrap();
    let foreign = ["key/photo.jpg", "key/@/photo.jpg", "key/@/007", "key/@/-3", "key/@/99999999999999999999999"];
    for name in foreign {
        fs::write(directory.path().join(name), "foreign").unwrap();
    }
    assert_eq!(store.get("key").await.unwrap().unwrap().version, version);
    store.put("key", "next".into(), &Precondition::Matches(version)).await.unwrap();
    assert_eq!(ListedObject::keys(store.list("").await.unwrap()), ["key"]);
    for name in foreign {
        assert_eq!(fs::read(directory.path().join(name)).unwrap(), b"foreign");
    }
}

#[tokio::test]
async fn what_cannot_be_a_record_is_unreadable() {
    let directory = tempdir().unwrap();
    let store = FileStore::new(directory.path());
    fs::create_dir_all(directory.path().join("large/@")).unwrap();
    fs::write(directory.path().join("large/@/7"), vec![b' '; MAX_BODY_BYTES + 1]).unwrap();
    fs::create_dir_all(directory.path().join("odd/@/7")).unwrap();
    for key in ["large", "odd"] {
        let error = store.get(key).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreadable);
        assert!(error.to_string().contains("/@/7 is not a file of at most 65536 bytes"), "{error}");
    }
}

#[tokio::test]
async fn keys_that_cannot_be_paths_are_refused() {
    let directory = tempdir().unwrap();
    let store = FileStore::new(directory.path().join("store"));
    for key in
        ["", "/", "/etc/passwd", "a//b", "a/", ".", "..", "../a", "a/../../b", ".a", "a/@", "@/1", "a\\b", "a\0b"]
    {
        let expect_fatal = |error: StoreError| {
            assert_eq!(error.kind(), StoreErrorKind::Fatal, "{key:?}: {error}");
            assert!(error.to_string().contains(&format!("the key {key:?} cannot be used")), "{error}");
        };
        expect_fatal(store.get(key).await.unwrap_err());
        expect_fatal(store.put(key, "body".into(), &Precondition::Absent).await.unwrap_err());
        expect_fatal(store.delete(key, Some(&Version::new("1"))).await.unwrap_err());
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);

    let long = "k".repeat(300);
    let error = store.put(&long, "body".into(), &Precondition::Absent).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Fatal, "{error}");
    for key in ["ключ", "a b", "a/b.json", "a@b", "-", "~", "a:b*?"] {
        store.put(key, "body".into(), &Precondition::Absent).await.unwrap();
        assert!(ListedObject::keys(store.list("").await.unwrap()).contains(&key.to_owned()));
    }
}

#[tokio::test]
async fn a_store_without_a_directory_is_refused() {
    let store = FileStore::new("");
    for error in [store.get("key").await.unwrap_err(), store.list("").await.unwrap_err()] {
        assert_eq!(error.kind(), StoreErrorKind::Fatal);
        assert!(error.to_string().contains("name a directory"), "{error}");
    }
}

#[test]
fn a_relative_directory_is_where_the_process_was() {
    let store = FileStore::new("locks");
    assert!(store.directory().is_absolute());
    assert_eq!(store.directory(), Path::new(&std::env::current_dir().unwrap()).join("locks"));
}

/// A path at which not even root may create a directory.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_place_that_cannot_be_written_is_fatal() {
    let error = FileStore::new("/sys").put("key", "body".into(), &Precondition::Absent).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Fatal, "{error}");
    assert!(error.to_string().starts_with("cannot write file:///sys/key: "), "{error}");
}

/// The number of files and directories below `path`.
fn inodes(path: &Path) -> usize {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| 1 + if path.is_dir() { inodes(&path) } else { 0 }).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_leave_nothing_behind() {
    let directory = tempdir().unwrap();
    let store = FileStore::new(directory.path());
    store.put("locks/scheduler", "body".into(), &Precondition::Absent).await.unwrap();
    let before = inodes(directory.path());
    let config = ProbeConfig::new().beside("locks/scheduler");
    // Each removes the empty folders above its own, while the others need them.
    let reports = tokio::join!(
        probe(store.clone(), &config),
        probe(FileStore::new(directory.path()), &config),
        probe(FileStore::new(directory.path()), &config),
    );
    for report in [reports.0, reports.1, reports.2] {
        assert_eq!(report.verdict(), Verdict::Fit, "{report}");
        assert_eq!(report.leftovers(), Vec::<String>::new(), "{report}");
    }
    assert_eq!(inodes(directory.path()), before);
    assert_eq!(ListedObject::keys(store.list("").await.unwrap()), ["locks/scheduler"]);
}

#[tokio::test]
async fn what_is_discarded_leaves_no_trace_and_takes_nothing_else_away() {
    let directory = tempdir().unwrap();
    let store = FileStore::new(directory.path());
    for key in ["a", "a/b", "a/b/c", "d/e"] {
        store.put(key, "body".into(), &Precondition::Absent).await.unwrap();
    }
    for key in ["a/b", "d/e", "never/written"] {
        store.discard(key).await.unwrap();
    }
    assert_eq!(ListedObject::keys(store.list("").await.unwrap()), ["a", "a/b/c"]);
    assert!(!directory.path().join("d").exists());
    store.discard("a/b/c").await.unwrap();
    store.discard("a").await.unwrap();
    assert_eq!(inodes(directory.path()), 0);
}

/// A pipe without a writer would hang whoever opens it for reading.
#[tokio::test]
async fn what_is_no_file_is_refused_at_once() {
    let make_pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let make_link = |path: &Path| symlink("/dev/zero", path).unwrap();
    let make_dangling = |path: &Path| symlink("nothing", path).unwrap();
    let make_socket = |path: &Path| drop(UnixListener::bind(path).unwrap());
    type Make<'a> = (&'a str, &'a dyn Fn(&Path));
    let make: [Make<'_>; 4] =
        [("pipe", &make_pipe), ("link", &make_link), ("dangling", &make_dangling), ("socket", &make_socket)];
    for (key, make) in make {
        let directory = tempdir().unwrap();
        let store = FileStore::new(directory.path());
        let version = store.put(key, "body".into(), &Precondition::Absent).await.unwrap();
        make(&directory.path().join(key).join("@/2"));
        let error = store.get(key).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{key}: {error}");
        assert!(error.to_string().contains("/@/2 is not a file of at most 65536 bytes"), "{error}");
        for precondition in [Precondition::Absent, Precondition::Matches(version)] {
            let error = store.put(key, "late".into(), &precondition).await.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Conflict, "{key}: {error}");
        }
        assert_eq!(store.list("").await.unwrap(), [ListedObject::new(key, None)]);

        let sequenced = CreateOnlyDirectory::new(directory.path());
        make(&directory.path().join("object"));
        assert_eq!(sequenced.read("object").await.unwrap_err().kind(), StoreErrorKind::Unreadable, "{key}");
    }
}

/// Returns `true` if nobody but its owner can replace anything on the way to `path`.
fn is_private(path: &Path) -> bool {
    path.ancestors().all(|directory| directory.metadata().unwrap().mode() & 0o022 == 0)
}

#[tokio::test]
async fn a_link_of_another_user_is_not_followed() {
    const STRANGER: u32 = 12_345;

    let home = tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let elsewhere = tempdir().unwrap();
    FileStore::new(elsewhere.path()).put("key", "body".into(), &Precondition::Absent).await.unwrap();
    symlink(elsewhere.path(), home.path().join("locks")).unwrap();
    fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
    if chown(home.path(), Some(STRANGER), None).is_err() {
        println!("skipped: only root can give a directory to another user");
        return;
    }
    let error = FileStore::new(home.path()).get("locks/key").await.unwrap_err();
    assert!(error.to_string().contains("a symbolic link, which others can replace"), "{error}");
}

#[tokio::test]
async fn a_link_is_followed_only_where_nobody_else_can_put_another_one() {
    let below = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let home = tempdir_in(below).unwrap();
    let elsewhere = tempdir().unwrap();
    FileStore::new(elsewhere.path()).put("key", "body".into(), &Precondition::Absent).await.unwrap();
    symlink(elsewhere.path(), home.path().join("locks")).unwrap();
    for (mode, is_followed) in [(0o755, is_private(below)), (0o775, false), (0o777, false), (0o1777, false)] {
        fs::set_permissions(home.path(), Permissions::from_mode(mode)).unwrap();
        for (directory, key) in [(home.path().join("locks"), "key"), (home.path().to_owned(), "locks/key")] {
            let read = FileStore::new(directory).get(key).await;
            if is_followed {
                assert_eq!(read.unwrap().unwrap().body, "body");
                continue;
            }
            let error = read.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Fatal, "{mode:o}: {error}");
            let advice = "a symbolic link, which others can replace: put a directory in its place";
            assert!(error.to_string().ends_with(advice), "{mode:o}: {error}");
        }
    }
}

/// A runtime without threads for blocking work: none has so large a stack.
fn without_threads() -> Runtime {
    Builder::new_current_thread().thread_stack_size(1 << 48).build().unwrap()
}

#[test]
fn a_call_without_a_thread_fails_and_leaves_nothing_behind() {
    let directory = tempdir().unwrap();
    let store = FileStore::new(directory.path());
    let starved = without_threads();
    for _ in 0..2 {
        let error = starved.block_on(store.put("key", "late".into(), &Precondition::Absent)).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
        assert!(error.to_string().contains("raise the limit of processes"), "{error}");
    }
    // Nobody waits for those calls, and they are not made later.
    Builder::new_current_thread().build().unwrap().block_on(async {
        assert_eq!(store.get("key").await.unwrap(), None);
        store.put("key", "in time".into(), &Precondition::Absent).await.unwrap();
    });
    drop(starved);
}
