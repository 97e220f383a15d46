//! The objects of a sequenced lock, whose names and contents others choose.

use bytes::Bytes;
use leaderelection::implement::{ConditionalStore as _, ConditionalStoreExt, Precondition};
use leaderelection_sequenced::{CreateOnlyStore as _, MemoryCreateOnlyStore, SequencedStore};

use crate::runtime::wait;

/// The most objects of an input, so that large inputs are not slow.
const MOST: usize = 40;

/// The objects that an input describes, one to a line: the name, and the content after a space. The sign `$` is the line feed
/// with which a complete content ends.
pub(super) fn objects(input: &[u8]) -> impl Iterator<Item = (&str, String)> {
    let lines = input.split(|byte| *byte == b'\n').take(MOST).filter_map(|line| str::from_utf8(line).ok());
    lines
        .map(|line| line.split_once(' ').unwrap_or((line, "")))
        .map(|(name, content)| (name, content.replace('$', "\n")))
}

pub(super) fn sequenced(input: &[u8]) {
    wait(async {
        let objects_of_others = MemoryCreateOnlyStore::new();
        for (name, content) in objects(input) {
            let _exists = objects_of_others.create(name, Bytes::from(content)).await;
        }
        let store = SequencedStore::new(objects_of_others);
        for listed in store.list("").await.unwrap_or_default() {
            let _ = store.get(&listed.key).await;
        }
        let Ok(found) = store.get("lock").await else { return };
        let precondition = found.map_or(Precondition::Absent, |found| Precondition::Matches(found.version));
        let body = Bytes::from_static(b"written");
        if store.put("lock", body.clone(), &precondition).await.is_ok() {
            assert_eq!(store.get("lock").await.unwrap().unwrap().body, body);
        }
    });
}
