//! The place of a contest's lock.

use std::path::Path;
use std::sync::Arc;

use leaderelection_integration_tests::place::Place;
use tempfile::TempDir;

use crate::cloud::Cloud;

/// The place of the lock.
pub(super) enum Site {
    /// The places of the parts of one lock, or of the whole.
    Clouds(Vec<Arc<Cloud>>),
    Directory(TempDir, Layout),
}

/// The layout of a lock in a directory.
#[derive(Clone, Copy)]
pub(super) enum Layout {
    /// That of `FileStore`.
    File,
    /// One object per write. Every write removes all earlier ones at once.
    CreateOnly,
}

impl Site {
    pub(super) fn cloud(cloud: Arc<Cloud>) -> Self {
        Self::Clouds(vec![cloud])
    }

    pub(super) fn directory(layout: Layout) -> Self {
        Self::Directory(tempfile::tempdir().expect("a directory"), layout)
    }
}

impl Layout {
    /// The place of a lock, for another process.
    pub(super) fn place(self, directory: &Path, key: &str) -> Place {
        let path = directory.display();
        let url = match self {
            Self::File => format!("file://{path}/{key}"),
            Self::CreateOnly => format!("sequenced+file://{path}/{key}?keep=1"),
        };
        Place::Url(url.parse().expect("a URL"))
    }
}
