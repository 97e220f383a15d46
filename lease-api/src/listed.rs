//! A Lease of a listing. Thousands are in memory, so the object is read only when somebody asks for it.

use std::sync::Arc;

use leaderelection::implement::{Version, VersionedObject};
use leaderelection::lock::RecordError;

use crate::object::{Object, Place};

#[derive(Debug)]
pub(crate) struct Listed {
    place: Arc<Place>,
    /// The body is the one that [`Seen`](crate::seen::Seen) has, if it has this version.
    found: VersionedObject,
    resource_version: Box<str>,
    is_deleted: bool,
}

impl Listed {
    pub(crate) fn read(place: Arc<Place>, found: VersionedObject) -> Result<Self, RecordError> {
        let object = Object::read(&place, &found)?;
        let resource_version = object.resource_version().into();
        Ok(Self { is_deleted: object.is_deleted(), place, resource_version, found })
    }

    /// The object; `None` never, because it was readable before.
    pub(crate) fn object(&self) -> Option<Object> {
        Object::read(&self.place, &self.found).ok()
    }

    pub(crate) fn place(&self) -> &Arc<Place> {
        &self.place
    }

    pub(crate) fn version(&self) -> &Version {
        &self.found.version
    }

    pub(crate) fn resource_version(&self) -> &str {
        &self.resource_version
    }

    /// What is left of a Lease that was deleted.
    pub(crate) fn is_deleted(&self) -> bool {
        self.is_deleted
    }

    /// Returns `true` if this is the Lease with a version for clients, or the write behind that one.
    pub(crate) fn goes_on_from(&self, version: &str) -> bool {
        *self.resource_version == *version || self.object().is_some_and(|object| object.is_behind(version))
    }

    /// About what it takes in memory.
    pub(crate) fn size(&self) -> usize {
        const BESIDE: usize = 400;
        self.found.body.len().saturating_add(BESIDE)
    }
}
