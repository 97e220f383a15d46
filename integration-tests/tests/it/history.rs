//! The history of a store, as the judge in another language reads it.

use std::io;
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use leaderelection::MemoryStore;
use leaderelection::implement::{ConditionalStore, Precondition};
use leaderelection_integration_tests::history::{History, JUDGE, Recorded, judge, verdict};
use tempfile::NamedTempFile;

const WRITERS: u32 = 4;

/// The object of a store, as a process of a history uses it.
fn recorded(store: &Arc<dyn ConditionalStore>, process: u32, file: &NamedTempFile) -> Arc<Recorded> {
    Recorded::new(Arc::clone(store), "lock", History::of(process, file.path()).unwrap())
}

/// Reads and replaces an object many times, whoever else does.
async fn write(store: Arc<Recorded>, writer: u32) {
    for round in 0..20 {
        let found = store.get("lock").await.unwrap();
        let precondition = found.map_or(Precondition::Absent, |found| Precondition::Matches(found.version));
        tokio::task::yield_now().await;
        let _lost = store.put("lock", Bytes::from(format!("{writer}, {round}")), &precondition).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_at_once_are_explained() {
    let file = NamedTempFile::new().unwrap();
    let store: Arc<dyn ConditionalStore> = Arc::new(MemoryStore::new());
    let writers = (0..WRITERS).map(|writer| tokio::spawn(write(recorded(&store, writer, &file), writer)));
    futures_util::future::try_join_all(writers).await.unwrap();
    judge(file.path(), false);
}

#[test]
fn histories_that_were_broken_on_purpose_are_refused() {
    match Command::new("go").args(["test", "-C", JUDGE, "./..."]).output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => println!("skipped: Go is not installed"),
        tested => {
            let tested = tested.unwrap();
            assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stdout));
        }
    }
}

#[tokio::test]
async fn a_write_behind_the_back_of_the_history_is_not_explained() {
    let file = NamedTempFile::new().unwrap();
    let memory: Arc<dyn ConditionalStore> = Arc::new(MemoryStore::new());
    let store = recorded(&memory, 0, &file);
    store.put("lock", Bytes::from_static(b"a"), &Precondition::Absent).await.unwrap();
    // Behind the back of the history.
    let found = memory.get("lock").await.unwrap().unwrap();
    memory.put("lock", Bytes::from_static(b"b"), &Precondition::Matches(found.version)).await.unwrap();
    store.get("lock").await.unwrap();
    if let Some(verdict) = verdict(file.path(), false) {
        assert!(verdict.unwrap_err().contains("no order of the operations"));
    }
}
