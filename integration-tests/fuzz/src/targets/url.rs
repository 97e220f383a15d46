//! URLs of locks.

use leaderelection_backends::url::Location;

pub(super) fn url(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let location: Location = match text.parse() {
        Ok(location) => location,
        Err(error) => {
            assert!(error.to_string().len() < 1_000, "an error repeats the URL: {error}");
            return;
        }
    };
    assert!(!location.key().is_empty());
    let shown = location.to_string();
    let read: Location = shown.parse().unwrap_or_else(|error| panic!("{shown}: {error}"));
    if matches!(&location, Location::Azure(blob) if blob.sas.is_some()) {
        // A SAS, the one query, is never shown.
        assert!(!shown.contains('?'), "{shown}");
    } else {
        assert_eq!(read, location);
        assert_eq!(serde_json::from_str::<Location>(&serde_json::to_string(&location).unwrap()).unwrap(), location);
        assert_eq!(location.with_key("other").with_key(location.key()), location);
    }
}
