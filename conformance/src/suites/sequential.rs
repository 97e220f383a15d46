//! Single calls in sequence, each with its required answer and its required effect.

use leaderelection::ConditionalStore;
use leaderelection::Precondition::{Absent, Matches};
use leaderelection::StoreErrorKind::{Conflict, Fatal};
use leaderelection::store::{ListedObject, MAX_BODY_BYTES};

use super::calls::Suite;
use super::clause::{
    BODY_SIZE, CONFLICT, DELETE, LINEARIZABLE_READ, LIST, PAGES, UNIQUE_VERSIONS, VERSION, WRITTEN, demand,
};

/// The largest number of pages with two objects each that the listings of this suite may have.
const MOST_PAGES: usize = 20;

impl<S: ConditionalStore> Suite<S> {
    pub(super) async fn missing_objects(&self) {
        let key = &self.key("missing");
        self.expect_none(key, "before it was created").await;

        // A version that this store has issued, but for another object.
        let other = self.put(&self.key("other"), "other", &Absent).await;
        let refused = (Conflict, "an update of a missing object", CONFLICT);
        self.put_refused(key, "update", &Matches(other.clone()), refused).await;
        self.expect_none(key, "after a refused update of a missing object").await;

        self.delete_refused(key, &other, "a deletion of a missing object").await;
    }

    pub(super) async fn create(&self) {
        let key = &self.key("create");
        let first = self.put(key, "first", &Absent).await;
        self.expect(key, b"first", &first, "after its creation", LINEARIZABLE_READ).await;

        self.put_refused(key, "second", &Absent, (Conflict, "a second create", CONFLICT)).await;
        self.expect(key, b"first", &first, "after a refused second create", CONFLICT).await;
        // Equal bodies make no difference: a repeated create must not mistake the first create for its own.
        self.put_refused(key, "first", &Absent, (Conflict, "a second create with an equal body", CONFLICT)).await;
    }

    pub(super) async fn update(&self) {
        let key = &self.key("update");
        let first = self.put(key, "first", &Absent).await;
        self.expect(key, b"first", &first, "before an update", LINEARIZABLE_READ).await;
        let second = self.put(key, "second", &Matches(first.clone())).await;
        self.expect(key, b"second", &second, "after an update", LINEARIZABLE_READ).await;

        self.put_refused(key, "third", &Matches(first), (Conflict, "a stale update", CONFLICT)).await;
        self.expect(key, b"second", &second, "after a refused stale update", CONFLICT).await;
    }

    pub(super) async fn delete(&self) {
        let key = &self.key("delete");
        let first = self.put(key, "first", &Absent).await;
        let second = self.put(key, "second", &Matches(first.clone())).await;

        self.delete_refused(key, &first, "a stale deletion").await;
        self.expect(key, b"second", &second, "after a refused stale deletion", DELETE).await;

        self.delete_object(key, &second).await;
        self.expect_none(key, "after its deletion").await;
        self.delete_refused(key, &second, "a second deletion").await;
        let refused = (Conflict, "an update of a deleted object", CONFLICT);
        self.put_refused(key, "third", &Matches(second.clone()), refused).await;
        self.expect_none(key, "after a refused update of a deleted object").await;

        let again = self.put(key, "first", &Absent).await;
        self.expect(key, b"first", &again, "after it was created anew", LINEARIZABLE_READ).await;
        if self.store.has_unique_versions() {
            let what = format!("created anew, it has the version {again} a second time");
            demand(again != first && again != second, &self.store.describe(key), what, UNIQUE_VERSIONS);
        }
    }

    pub(super) async fn versions(&self) {
        let key = &self.key("versions");
        // These bodies are like two records that differ only in their write id.
        let (a, b) = (r#"{"holderIdentity":"a","writeId":"1"}"#, r#"{"holderIdentity":"a","writeId":"2"}"#);
        let first = self.put(key, a, &Absent).await;
        let second = self.put(key, b, &Matches(first.clone())).await;
        let object = self.store.describe(key);
        demand(first != second, &object, format!("two bodies have the version {first}"), VERSION);

        let third = self.put(key, a, &Matches(second.clone())).await;
        self.expect(key, a.as_bytes(), &third, "after it was written back", LINEARIZABLE_READ).await;
        demand(second != third, &object, format!("two bodies have the version {second}"), VERSION);
        if self.store.has_unique_versions() {
            demand(first != third, &object, format!("two writes have the version {first}"), UNIQUE_VERSIONS);
        }
    }

    pub(super) async fn body_sizes(&self) {
        let largest: Vec<u8> = (0..MAX_BODY_BYTES).map(|byte| (byte % 251) as u8).collect();
        let key = &self.key("sizes");
        self.put_refused(key, "", &Absent, (Fatal, "a write of an empty body", BODY_SIZE)).await;
        let too_large = [&largest[..], b"!"].concat();
        self.put_refused(key, too_large.clone(), &Absent, (Fatal, "a write of too large a body", BODY_SIZE)).await;
        self.expect_none(key, "after writes of impossible bodies").await;

        // The largest body contains every byte value, zeros included, and is not valid text.
        let version = self.put(key, largest.clone(), &Absent).await;
        self.expect(key, &largest, &version, "after a write of the largest body", WRITTEN).await;
        let version = self.put(key, "1", &Matches(version)).await;
        self.expect(key, b"1", &version, "after a write of the smallest body", WRITTEN).await;
        self.put_refused(key, too_large, &Matches(version), (Fatal, "an update with too large a body", BODY_SIZE))
            .await;
    }

    pub(super) async fn list(&self) {
        let prefix = &self.key("list/");
        self.expect_list(prefix, &[], "before anything was created").await;
        // An object's name may be the folder of other objects, and "-" sorts before "/".
        for name in ["b", "b/c", "b-d", "a", "gone"] {
            self.put(&self.key(&format!("list/{name}")), "listed", &Absent).await;
        }
        self.put(&self.key("list-not"), "not listed", &Absent).await;
        let gone = &self.key("list/gone");
        self.expect_list(gone, &["gone"], "listed by its whole key").await;
        if let Some(object) = self.get(gone).await {
            self.delete_object(gone, &object.version).await;
        }
        self.expect_list(prefix, &["a", "b", "b-d", "b/c"], "after four creations and a deletion").await;
        self.expect_list(&format!("{prefix}b"), &["b", "b-d", "b/c"], "by half a name").await;
    }

    async fn expect_list(&self, prefix: &str, names: &[&str], when: &str) {
        let expected: Vec<String> = names.iter().map(|name| self.key(&format!("list/{name}"))).collect();
        let listed = self.list_objects(prefix).await;
        for ListedObject { key, version, .. } in &listed {
            let Some(version) = version else { continue };
            let read = self.get(key).await.map(|object| object.version);
            let what = format!("{when}, the list shows the version {version:?} and a read shows {read:?}");
            demand(read.as_ref() == Some(version), &self.store.describe(key), what, LIST);
        }
        let found = ListedObject::keys(listed.clone());
        let what = format!("{when}, the list is {found:?} and not {expected:?}");
        demand(found == expected, &self.store.describe(prefix), what, LIST);
        self.expect_pages(prefix, &listed, when).await;
    }

    /// Requires the pages of a listing to have what the whole listing has, also if a page is asked for twice.
    async fn expect_pages(&self, prefix: &str, listed: &[ListedObject], when: &str) {
        let (mut found, mut token, mut pages) = (Vec::new(), None, 0);
        loop {
            let page = self.list_page(prefix, token.as_ref()).await;
            let again = self.list_page(prefix, token.as_ref()).await;
            let what = format!("{when}, the page after {token:?} has {:?} and then {:?}", page.objects, again.objects);
            demand(page.objects == again.objects, &self.store.describe(prefix), what, PAGES);
            found.extend(page.objects);
            pages += 1;
            let what = format!("{when}, the listing has more than {pages} pages");
            demand(pages <= MOST_PAGES, &self.store.describe(prefix), what, PAGES);
            token = page.next;
            if token.is_none() {
                break;
            }
        }
        found.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let what = format!("{when}, the pages have {found:?} and the list {listed:?}");
        demand(found == listed, &self.store.describe(prefix), what, PAGES);
    }
}
