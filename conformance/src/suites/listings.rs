//! The listings of a store, whole and by pages.

use leaderelection::StoreError;
use leaderelection::implement::Precondition::Absent;
use leaderelection::implement::{ConditionalStoreExt, ListedObject, PageToken};

use crate::contract::{Breach, LIST, ORDERED, PAGES};
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
        let (mut found, mut token) = (Vec::new(), None);
        for _ in 0..MOST_PAGES {
            let page = || self.call(prefix, self.store.list_page(prefix, token.as_ref(), Some(2)));
            let (page, again) =
                (patiently(|time| self.sleep(time), page).await?, patiently(|time| self.sleep(time), page).await?);
            let what = format!("{when}, the page after {token:?} has {:?} and then {:?}", page.objects, again.objects);
            Breach::unless(page.objects == again.objects, what, PAGES)?;
            if page.is_ordered {
                self.expect_order(prefix, listed, token.as_ref(), &page.objects).await?;
            }
            found.extend(page.objects);
            token = page.next;
            if token.is_none() {
                found.sort_unstable_by(|a, b| a.key.cmp(&b.key));
                let what = format!("{when}, the pages have {found:?} and the list {listed:?}");
                return Ok(Breach::unless(found == listed, what, PAGES)?);
            }
        }
        Err(Breach::new(format!("{when}, the listing has more than {MOST_PAGES} pages"), PAGES).into())
    }

    /// Requires the objects of a page of a store that lists in order to be the next ones of the listing, also of a page that
    /// begins behind the key before.
    async fn expect_order(
        &self,
        prefix: &str,
        listed: &[ListedObject],
        token: Option<&PageToken>,
        objects: &[ListedObject],
    ) -> Finding<()> {
        let Some(first) = objects.first() else { return Ok(()) };
        let at = listed.iter().position(|object| object.key == first.key).unwrap_or_default();
        let what = format!("the page after {token:?} has {objects:?} of {listed:?}");
        Breach::unless(listed[at..].starts_with(objects), what, ORDERED)?;
        let Some(before) = at.checked_sub(1).map(|before| &*listed[before].key) else { return Ok(()) };
        let behind = PageToken::behind(before);
        let page = || self.call(prefix, self.store.list_page(prefix, Some(&behind), Some(2)));
        let found = patiently(|time| self.sleep(time), page).await?.objects;
        let what = format!("the page behind {before} has {found:?} of {listed:?}");
        Ok(Breach::unless(!found.is_empty() && listed[at..].starts_with(&found), what, ORDERED)?)
    }
}
