//! The listings of a store, whole and by pages.

use leaderelection::StoreError;
use leaderelection::implement::Precondition::Absent;
use leaderelection::implement::{ConditionalStoreExt, ListedObject, PageToken};

use crate::contract::{Breach, LIST, PAGES, SEEKABLE};
use crate::patience::patiently;
use crate::probe::{Finding, Prober};

/// The largest number of pages with two objects each that the listings of this suite may have.
const MOST_PAGES: usize = 20;

impl Prober {
    pub(super) async fn listings(&self) -> Finding<()> {
        let folder = self.new_key("list");
        let key = |name: &str| format!("{folder}/{name}");
        self.expect_list(&key(""), &[], "before anything was created").await?;
        // An object's name may be the folder of other objects, and "-" sorts before "/".
        for name in ["b", "b/c", "b-d", "a", "gone"] {
            self.write(&key(name), "listed", &Absent).await?;
        }
        self.write(&format!("{folder}-not"), "not listed", &Absent).await?;
        self.expect_list(&key("gone"), &[key("gone")], "listed by its whole key").await?;
        self.discard(&key("gone")).await?;
        let [a, b, c, d] = ["a", "b", "b-d", "b/c"].map(key);
        let of_b = [b.clone(), c.clone(), d.clone()];
        self.expect_list(&key(""), &[a, b, c, d], "after four creations and a deletion").await?;
        self.expect_list(&key("b"), &of_b, "by half a name").await
    }

    pub(super) async fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StoreError> {
        patiently(|time| self.sleep(time), || self.call(prefix, self.store.list(prefix))).await
    }

    async fn expect_list(&self, prefix: &str, expected: &[String], when: &str) -> Finding<()> {
        let listed = self.list(prefix).await?;
        for ListedObject { key, version, .. } in &listed {
            let Some(version) = version else { continue };
            let read = self.get(key).await?.map(|object| object.version);
            let what = format!("{when}, the list shows the version {version:?} of {key} and a read shows {read:?}");
            Breach::unless(read.as_ref() == Some(version), what, LIST)?;
        }
        let found = ListedObject::keys(listed.clone());
        Breach::unless(found == expected, format!("{when}, the list is {found:?} and not {expected:?}"), LIST)?;
        self.expect_pages(prefix, &listed, when).await
    }

    /// Requires the pages of a listing to have what the whole listing has, also if a page is asked for twice.
    async fn expect_pages(&self, prefix: &str, listed: &[ListedObject], when: &str) -> Finding<()> {
        let (mut found, mut token, mut is_seekable) = (Vec::new(), None, true);
        for _ in 0..MOST_PAGES {
            let page = || self.call(prefix, self.store.list_page(prefix, token.as_ref(), Some(2)));
            let (page, again) =
                (patiently(|time| self.sleep(time), page).await?, patiently(|time| self.sleep(time), page).await?);
            let what = format!("{when}, the page after {token:?} has {:?} and then {:?}", page.objects, again.objects);
            Breach::unless(page.objects == again.objects, what, PAGES)?;
            is_seekable = is_seekable && page.is_seekable;
            found.extend(page.objects);
            token = page.next;
            if token.is_none() {
                let in_order = found.clone();
                found.sort_unstable_by(|a, b| a.key.cmp(&b.key));
                let what = format!("{when}, the pages have {found:?} and the list {listed:?}");
                Breach::unless(found == listed, what, PAGES)?;
                return if is_seekable { self.expect_seekable(prefix, &in_order).await } else { Ok(()) };
            }
        }
        Err(Breach::new(format!("{when}, the listing has more than {MOST_PAGES} pages"), PAGES).into())
    }

    /// Requires a page that begins behind an object to have those that follow it in a listing, in the store's own order. SeaweedFS
    /// leaves out a folder of that name.
    async fn expect_seekable(&self, prefix: &str, listed: &[ListedObject]) -> Finding<()> {
        for (number, object) in (1..).zip(listed) {
            let folder = format!("{}/", object.key);
            if listed.iter().any(|other| other.key.starts_with(&folder)) {
                continue;
            }
            let behind = PageToken::behind(&*object.key);
            let page = || self.call(prefix, self.store.list_page(prefix, Some(&behind), Some(2)));
            let found = patiently(|time| self.sleep(time), page).await?.objects;
            let rest = &listed[number..];
            let what = format!("the page behind {} has {found:?}, and {rest:?} follow it", object.key);
            Breach::unless(rest.starts_with(&found) && found.is_empty() == rest.is_empty(), what, SEEKABLE)?;
        }
        Ok(())
    }
}
