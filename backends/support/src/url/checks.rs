//! The checks of the parts of a URL: names, keys, endpoints, regions and files.

use leaderelection::names;

/// Refuses a key that is empty, or that has a character that nobody sees. `missing` is the error for an empty key.
///
/// # Errors
///
/// The problem, for a [`UrlError`](super::UrlError).
pub fn check_key(key: &str, missing: &str) -> Result<(), String> {
    if key.is_empty() {
        return Err(missing.to_owned());
    }
    names::problem_with(key).map_or(Ok(()), |problem| Err(format!("the key {problem}")))
}

/// Refuses an invalid name of `what`, such as a bucket, an account or a container. `missing` is the error for an empty
/// name.
///
/// # Errors
///
/// The problem, for a [`UrlError`](super::UrlError).
pub fn check_name(name: &str, what: &str, missing: &str) -> Result<(), String> {
    match name {
        "" => Err(missing.to_owned()),
        _ if !is_name(name) => {
            Err(format!("the name of the {what} is invalid: write only letters, digits, and any of - . _ $"))
        }
        _ => Ok(()),
    }
}

/// Refuses an invalid bucket, and an invalid key of an `object` in it.
///
/// # Errors
///
/// The problem, for a [`UrlError`](super::UrlError).
pub fn check_bucket(bucket: &str, key: &str, object: &str) -> Result<(), String> {
    if bucket.starts_with("arn:") {
        return Err(
            "an ARN names the bucket; write the access point's alias instead, such as name-1a2b3c-s3alias".to_owned()
        );
    }
    if bucket.contains(':') {
        return Err("a port belongs in the endpoint, not after the bucket".to_owned());
    }
    check_name(bucket, "bucket", "no bucket")?;
    check_key(key, &format!("no {object} after the bucket"))
}

/// Returns `true` if `name` is a valid name of a bucket, an account, a container or a host.
#[must_use]
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._$".contains(&byte))
}

/// Returns the one spelling of an endpoint, or refuses what is none. `credentials` says where credentials belong.
///
/// # Errors
///
/// The problem, for a [`UrlError`](super::UrlError).
#[cfg(feature = "http")]
pub fn checked_endpoint(endpoint: &str, credentials: &str) -> Result<String, String> {
    if let Some(problem) = names::problem_with(endpoint) {
        return Err(format!("the endpoint {problem}"));
    }
    let url = url::Url::parse(endpoint).map_err(|error| format!("the endpoint is not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("the endpoint starts with neither http:// nor https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("credentials do not belong in an endpoint, set {credentials}"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(
            "the endpoint must have neither a query nor a fragment; put & before the next parameter of the lock's URL"
                .to_owned(),
        );
    }
    // The parser writes scheme and host in lower case, and leaves out the scheme's own port and parts such as `..`.
    let path = url.path().trim_end_matches('/');
    if path.contains('%') {
        return Err(
            "the endpoint's path has a character that URLs have to escape; no endpoint needs one, so correct the path"
                .to_owned(),
        );
    }
    Ok(format!("{}{path}", &url[..url::Position::BeforePath]))
}

/// Checks a region, which becomes part of the host's name and of the signed text.
///
/// # Errors
///
/// The problem, for a [`UrlError`](super::UrlError).
pub fn checked_region(region: &str) -> Result<String, String> {
    if let Some(problem) = names::problem_with(region) {
        return Err(format!("the region {problem}"));
    }
    let is_label = (1..=63).contains(&region.len())
        && !region.starts_with('-')
        && region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_label.then(|| region.to_owned()).ok_or_else(|| "the region is empty or not a region's name".to_owned())
}

/// Checks the path of a file with authorities that are trusted beside those of the system.
///
/// # Errors
///
/// The problem, for a [`UrlError`](super::UrlError).
pub fn checked_ca(path: &str) -> Result<String, String> {
    match names::problem_with(path) {
        _ if path.is_empty() => Err("ca is empty: name a file with certificates of authorities".to_owned()),
        Some(problem) => Err(format!("the path that ca names {problem}")),
        None => Ok(path.to_owned()),
    }
}
