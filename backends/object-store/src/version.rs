//! A version of ours, which has both parts of a version of `object_store`.

use leaderelection::implement::Version;
use object_store::UpdateVersion;

/// Between the ETag and the version. Neither of them has it, because both are ASCII.
const SEPARATOR: char = '·';

/// Combines the parts; `None` if there are none. Google compares the version, and the others compare the ETag.
pub(crate) fn of(e_tag: Option<&str>, version: Option<&str>) -> Option<Version> {
    match (e_tag, version) {
        (None, None) => None,
        (Some(e_tag), None) => Some(Version::new(e_tag)),
        (e_tag, Some(version)) => Some(Version::new(format!("{}{SEPARATOR}{version}", e_tag.unwrap_or_default()))),
    }
}

/// Takes a version apart.
pub(crate) fn expected(version: &Version) -> UpdateVersion {
    let (e_tag, version) = match version.as_str().split_once(SEPARATOR) {
        Some((e_tag, version)) => (e_tag, Some(version.to_owned())),
        None => (version.as_str(), None),
    };
    UpdateVersion { e_tag: (!e_tag.is_empty()).then(|| e_tag.to_owned()), version }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_come_back() {
        for (e_tag, version) in
            [(Some("\"1f\""), None), (None, Some("17")), (Some("\"1f\""), Some("17")), (Some("W/\"a b\""), Some(""))]
        {
            let parts = expected(&of(e_tag, version).unwrap());
            assert_eq!((parts.e_tag.as_deref(), parts.version.as_deref()), (e_tag, version));
        }
        assert_eq!(of(None, None), None);
    }
}
