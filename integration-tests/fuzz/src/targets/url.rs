//! URLs of locks.

use leaderelection_backends::url::Location;

/// Characters that nobody sees.
const HIDDEN: [char; 6] = ['\r', '\n', ' ', '\u{a0}', '\u{200b}', '\u{feff}'];

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
    for hidden in HIDDEN {
        for text in [format!("{text}{hidden}"), format!("{hidden}{text}")] {
            assert!(text.parse::<Location>().is_err(), "{text:?} is another lock than {shown}");
        }
        assert!(hidden == ' ' || !location.key().contains(hidden), "{shown} has what nobody sees");
    }
    // The whole text behind the colon is a name in memory.
    let others = if matches!(location, Location::Memory(_)) { Vec::new() } else { spellings(text) };
    for spelling in others {
        // One of two spellings may be refused.
        if let Ok(other) = spelling.parse::<Location>() {
            assert_eq!(other, location, "{spelling:?} opens the same object as {text:?}");
        }
    }
}

/// Other texts that name the same object.
fn spellings(text: &str) -> Vec<String> {
    let (path, query) = text.split_at(text.find('?').unwrap_or(text.len()));
    let Some((scheme, rest)) = path.split_once("://") else { return Vec::new() };
    let mut spellings = Vec::new();
    let (authority, key) = rest.split_at(rest.find('/').map_or(rest.len(), |slash| slash + 1));
    if !key.contains('%') {
        let escaped: String = key.chars().map(escaped).collect();
        spellings.push(format!("{scheme}://{authority}{escaped}{query}"));
    }
    if scheme.ends_with("file") {
        spellings.extend(["//", "/./"].map(|slash| format!("{scheme}://{}{query}", rest.replace('/', slash))));
        spellings.push(format!("{path}/{query}"));
    }
    if scheme.starts_with("http") {
        spellings.push(format!("{scheme}://{}{key}{query}", authority.to_ascii_uppercase()));
        let port = if scheme == "https" { ":443/" } else { ":80/" };
        spellings.push(format!("{scheme}://{}{query}", rest.replacen('/', port, 1)));
    } else if let Some(value) =
        ["?endpoint=", "&endpoint="].iter().find_map(|name| Some(query.find(name)? + name.len()))
    {
        let (before, endpoint) = query.split_at(value);
        let (endpoint, after) = endpoint.split_at(endpoint.find('&').unwrap_or(endpoint.len()));
        spellings.push(format!("{path}{before}{endpoint}/{after}"));
        // Further ones are part of a path, which keeps its case.
        let parts =
            endpoint.split_once("://").filter(|(scheme, _)| scheme.bytes().all(|byte| byte.is_ascii_alphabetic()));
        if let Some((scheme, rest)) = parts {
            let (host, rest) = rest.split_at(rest.find(['/', '\\', '%', ':', '?', '#']).unwrap_or(rest.len()));
            let (scheme, host) = (scheme.to_ascii_uppercase(), host.to_ascii_uppercase());
            spellings.push(format!("{path}{before}{scheme}://{host}{rest}{after}"));
        }
    }
    spellings
}

fn escaped(c: char) -> String {
    if c.is_ascii_alphanumeric() { format!("%{:02x}", u32::from(c)) } else { c.to_string() }
}
