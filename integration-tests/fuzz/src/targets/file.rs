//! The directory of an object of the file store, in which others may write.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use leaderelection::implement::{ConditionalStore as _, ConditionalStoreExt, Precondition};
use leaderelection_backends::file::FileStore;

use super::sequenced::objects;
use crate::runtime::wait;

pub(super) fn file(input: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let generations = folder.path().join("lock/@");
    fs::create_dir_all(&generations).unwrap();
    for (name, content) in objects(input).filter(|(name, _)| is_name(name)) {
        fs::write(generations.join(name), content).unwrap();
    }
    wait(read_and_write(folder.path()));
}

fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0']) && name.len() < 256
}

async fn read_and_write(folder: &Path) {
    let store = FileStore::new(folder);
    let listed = store.list("").await.unwrap_or_default();
    let found = match store.get("lock").await {
        Ok(found) => found,
        // It is too large.
        Err(_) => return,
    };
    assert_eq!(found.is_some(), listed.iter().any(|object| object.key == "lock"));
    let precondition = found.map_or(Precondition::Absent, |found| Precondition::Matches(found.version));
    let body = Bytes::from_static(b"written");
    if store.put("lock", body.clone(), &precondition).await.is_ok() {
        assert_eq!(store.get("lock").await.unwrap().unwrap().body, body);
    }
}
