//! The common parts of the URLs: `scheme://authority/key?query`.
//!
//! The crate `url` is not used here, because it changes keys: that crate reads `a/../b` as `b`, and drops tabs and line
//! breaks. A key must stay as it was written.

use std::fmt;

use leaderelection::names;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::UrlError;
use super::strange::strange;

/// The characters that a key has to encode: `%`, the characters that end the path, and the characters that mislead
/// people and shells.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`');

/// The characters that the value of a parameter has to encode. Slashes and colons stay, so that people can read a URL.
#[cfg(any(feature = "azure", feature = "gcs", feature = "opendal-services", feature = "s3"))]
const ESCAPED_VALUE: &AsciiSet = &ESCAPED.add(b'&').add(b'+');

/// The parts of a URL, and an example of a valid URL.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) authority: &'a str,
    /// The text between the authority and the query, decoded, without its first slash.
    pub(super) path: String,
    pub(super) query: Option<&'a str>,
}

impl<'a> Parts<'a> {
    pub(super) fn parse(text: &'a str, scheme: &str, example: &'static str) -> Result<Self, UrlError> {
        let wrong = |problem: &str| Err(UrlError { problem: problem.to_owned(), example });
        if let Some(problem) = strange(text) {
            return wrong(&problem);
        }
        let Some(rest) = text.strip_prefix(scheme).and_then(|rest| rest.strip_prefix("://")) else {
            return wrong(&format!("the URL does not begin with {scheme}://"));
        };
        if rest.contains('#') {
            return wrong("a # is written %23");
        }
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return wrong("credentials do not belong in a URL, set them in the environment");
        }
        match percent_decode_str(path).decode_utf8() {
            Ok(path) => Ok(Self { authority, path: path.into_owned(), query }),
            Err(_) => wrong("the key is not UTF-8"),
        }
    }
}

/// Refuses a key that is empty, or that has a character that nobody sees. `missing` is the error for an empty key.
pub(super) fn check_key(key: &str, missing: &str) -> Result<(), String> {
    if key.is_empty() {
        return Err(missing.to_owned());
    }
    names::problem_with(key).map_or(Ok(()), |problem| Err(format!("the key {problem}")))
}

/// The parameters of a query, decoded. Of two values of one parameter, nobody could tell which one counts.
#[cfg(any(feature = "azure", feature = "gcs", feature = "opendal-services", feature = "s3"))]
pub(super) fn parameters(query: Option<&str>) -> Result<Vec<(String, String)>, String> {
    let mut parameters: Vec<(String, String)> = Vec::new();
    for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        if parameters.iter().any(|(known, _)| *known == name) {
            return Err("a parameter stands there twice".to_owned());
        }
        parameters.push((name.into_owned(), value.into_owned()));
    }
    Ok(parameters)
}

/// Refuses an invalid name of `what`, such as a bucket, an account or a container. `missing` is the error for an empty
/// name.
#[cfg(any(feature = "azure", feature = "gcs", feature = "kubernetes", feature = "opendal-services", feature = "s3"))]
pub(super) fn check_name(name: &str, what: &str, missing: &str) -> Result<(), String> {
    match name {
        "" => Err(missing.to_owned()),
        _ if !is_name(name) => Err(format!(
            "what stands for the {what} is not the name of one: those have only letters, digits, and any of - . _ $"
        )),
        _ => Ok(()),
    }
}

/// Returns `true` if `name` is a valid name of a bucket, an account, a container or a host.
#[cfg(any(feature = "azure", feature = "gcs", feature = "kubernetes", feature = "opendal-services", feature = "s3"))]
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._$".contains(&byte))
}

/// Returns the one spelling of an endpoint, or refuses what is none. `credentials` says where credentials belong.
#[cfg(any(feature = "gcs", feature = "opendal-services", feature = "s3"))]
pub(super) fn checked_endpoint(endpoint: &str, credentials: &str) -> Result<String, String> {
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
        return Err("an endpoint has neither a query nor a fragment; parameters of ours are joined by &".to_owned());
    }
    // The parser writes scheme and host in lower case, and leaves out the scheme's own port and parts such as `..`.
    let path = url.path().trim_end_matches('/');
    if path.contains('%') {
        return Err(
            "the path of the endpoint has a character that a URL has to escape, which no endpoint needs".to_owned()
        );
    }
    Ok(format!("{}{path}", &url[..url::Position::BeforePath]))
}

/// Checks a region, which becomes part of the host's name and of the signed text.
#[cfg(any(feature = "opendal-services", feature = "s3"))]
pub(super) fn checked_region(region: &str) -> Result<String, String> {
    if let Some(problem) = names::problem_with(region) {
        return Err(format!("the region {problem}"));
    }
    let is_label = (1..=63).contains(&region.len())
        && !region.starts_with('-')
        && region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_label.then(|| region.to_owned()).ok_or_else(|| "the region is not the name of one".to_owned())
}

#[cfg(any(feature = "opendal-services", feature = "s3"))]
pub(super) fn checked_flag(name: &str, value: &str) -> Result<bool, String> {
    value.parse().map_err(|_| format!("{name} is neither true nor false"))
}

/// Reads the number of newest objects that a write keeps.
pub(super) fn checked_keep(value: &str) -> Option<u64> {
    value.parse().ok().filter(|keep| *keep > 0)
}

/// A key in its URL encoding.
pub(super) fn escaped(key: &str) -> impl fmt::Display {
    utf8_percent_encode(key, ESCAPED)
}

/// The query of a URL with its question mark, of those parameters that have a value.
#[cfg(any(feature = "azure", feature = "gcs", feature = "opendal-services", feature = "s3"))]
pub(super) fn query<'a>(parameters: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let mut query = String::new();
    for (name, value) in parameters {
        if let Some(value) = value {
            let separator = if query.is_empty() { '?' } else { '&' };
            query.extend([format!("{separator}{name}="), utf8_percent_encode(value, ESCAPED_VALUE).to_string()]);
        }
    }
    query
}
