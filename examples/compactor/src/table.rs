//! A table of lines: files that any process adds, and files into which the compactor merges them.
//!
//! The manifest is a fenced object. It names every merged file, so a file that no manifest names is invisible, and a
//! compactor of the past can write files but not commit them.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context as _;
use futures_util::TryStreamExt as _;
use leaderelection::fence::{FencedError, FencedObject};
use leaderelection::{FencingToken, unique_identity};
use leaderelection_backends::object_store::ObjectStoreAdapter;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt as _};
use serde::{Deserialize, Serialize};

/// The list of what belongs to the table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The files that compactors have written.
    files: BTreeSet<String>,
    /// The added files that are in `files` already. They may be deleted at any time.
    merged: BTreeSet<String>,
}

/// A merged file that is written and not committed yet.
#[derive(Debug)]
pub struct Prepared {
    file: String,
    merged: BTreeSet<String>,
}

/// A table in a folder of a store.
#[derive(Clone, Debug)]
pub struct Table {
    store: Arc<dyn ObjectStore>,
    manifest: FencedObject<ObjectStoreAdapter, Manifest>,
    folder: Path,
}

impl Table {
    /// Opens the table in `folder`, which may be empty.
    #[must_use]
    pub fn new(store: Arc<dyn ObjectStore>, folder: Path) -> Self {
        let adapter = ObjectStoreAdapter::new(Arc::clone(&store));
        let manifest = FencedObject::new(adapter, folder.clone().join("manifest"));
        Self { store, manifest, folder }
    }

    /// Adds lines. Any process may do so, and needs no token.
    ///
    /// # Errors
    ///
    /// If the store refuses the file.
    pub async fn add(&self, lines: &[String]) -> anyhow::Result<()> {
        let name = self.folder.clone().join("added").join(unique_identity());
        self.store.put(&name, lines.join("\n").into()).await?;
        Ok(())
    }

    /// Raises the fence, so that no compactor of the past commits anything from now on.
    ///
    /// # Errors
    ///
    /// If a larger token was seen, or the store fails.
    pub async fn claim(&self, token: FencingToken) -> Result<(), FencedError> {
        self.manifest.claim(token).await.map(drop)
    }

    /// Merges what was added into one new file, which nobody sees yet. Returns `None` if nothing was added.
    ///
    /// # Errors
    ///
    /// If the store fails, or a file is missing.
    pub async fn prepare(&self, token: FencingToken) -> anyhow::Result<Option<Prepared>> {
        let added = self.added().await?;
        let known = self.manifest().await?.merged;
        let merged: BTreeSet<_> = added.into_iter().filter(|name| !known.contains(name)).collect();
        if merged.is_empty() {
            return Ok(None);
        }
        let mut lines = Vec::new();
        for name in &merged {
            lines.extend(self.lines(name).await?.with_context(|| format!("{name} is gone, and no manifest has it"))?);
        }
        let file = self.folder.clone().join("merged").join(format!("{token}-{}", unique_identity()));
        self.store.put(&file, lines.join("\n").into()).await?;
        Ok(Some(Prepared { file: file.to_string(), merged }))
    }

    /// Makes a prepared file a part of the table, and deletes what it replaces.
    ///
    /// # Errors
    ///
    /// If a larger token was seen, or the store fails.
    pub async fn commit(&self, token: FencingToken, prepared: &Prepared) -> anyhow::Result<()> {
        let still_there = self.added().await?;
        let committed = self.manifest.update(token, |manifest| {
            let Manifest { mut files, merged } = manifest.unwrap_or_default();
            // Two compactors may have merged the same files, and the first commit wins.
            if prepared.merged.is_disjoint(&merged) {
                files.insert(prepared.file.clone());
            }
            let merged = merged.union(&prepared.merged).filter(|name| still_there.contains(*name)).cloned().collect();
            Manifest { files, merged }
        });
        let replaced = committed.await?.merged;
        for name in replaced {
            self.store.delete(&Path::parse(name)?).await?;
        }
        Ok(())
    }

    /// Reads all lines. What is added during the read may be missing.
    ///
    /// # Errors
    ///
    /// If the store fails, or a file is missing.
    pub async fn read(&self) -> anyhow::Result<Vec<String>> {
        // In this order, because a file that is deleted after the listing is in a later manifest.
        let added = self.added().await?;
        let mut manifest = self.manifest().await?;
        let mut lines = Vec::new();
        for name in added.difference(&manifest.merged.clone()) {
            match self.lines(name).await? {
                Some(found) => lines.extend(found),
                // Merged and deleted since the manifest was read: read the table again.
                None => return Box::pin(self.read()).await,
            }
        }
        for name in std::mem::take(&mut manifest.files) {
            lines.extend(self.lines(&name).await?.with_context(|| format!("{name} is missing"))?);
        }
        lines.sort_unstable();
        Ok(lines)
    }

    async fn manifest(&self) -> Result<Manifest, FencedError> {
        Ok(self.manifest.read().await?.value.unwrap_or_default())
    }

    async fn added(&self) -> anyhow::Result<BTreeSet<String>> {
        let folder = self.folder.clone().join("added");
        Ok(self.store.list(Some(&folder)).map_ok(|meta| meta.location.to_string()).try_collect().await?)
    }

    async fn lines(&self, name: &str) -> anyhow::Result<Option<Vec<String>>> {
        let bytes = match self.store.get(&Path::parse(name)?).await {
            Ok(found) => found.bytes().await?,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok(Some(std::str::from_utf8(&bytes)?.lines().map(ToOwned::to_owned).collect()))
    }
}
