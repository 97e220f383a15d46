//! The body of a fenced object.

use bytes::Bytes;
use leaderelection::MemoryStore;
use leaderelection::fence::FencedObject;
use leaderelection::implement::{ConditionalStore as _, Precondition};
use serde_json::value::RawValue;

use crate::runtime::wait;

pub(super) fn fence(body: &[u8]) {
    wait(async {
        let store = MemoryStore::new();
        if store.put("object", Bytes::copy_from_slice(body), &Precondition::Absent).await.is_err() {
            return;
        }
        let object: FencedObject<_, Box<RawValue>> = FencedObject::new(store, "object");
        let Ok(read) = object.read().await else { return };
        let (Some(token), Some(value)) = (read.token, read.value) else { return };
        // A value at the limit leaves no room for another write id.
        if object.write(token, &value).await.is_err() {
            assert!(body.len() > 60_000, "what was read cannot be written");
            return;
        }
        let again = object.read().await.unwrap();
        assert_eq!(
            (again.token, again.value.map(|value| value.get().to_owned())),
            (Some(token), Some(value.get().to_owned()))
        );
        if let Some(older) = u64::from(token).checked_sub(1) {
            assert!(object.write(older, &value).await.is_err(), "an older leader writes");
        }
    });
}
