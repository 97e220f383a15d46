//! The common parts of the URLs: `scheme://authority/key?query`.
//!
//! The crate `url` is not used here, because it changes keys: that crate reads `a/../b` as `b`, and drops tabs and line
//! breaks. A key must stay as it was written.

use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::strange::strange;

/// The characters that a key has to encode: `%`, the characters that end the path, and the characters that mislead
/// people and shells.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`');

/// The characters that the value of a parameter has to encode. Slashes and colons stay, so that people can read a URL.
const ESCAPED_VALUE: &AsciiSet = &ESCAPED.add(b'&').add(b'+');

/// The parts of a URL.
#[derive(Debug)]
pub struct Parts<'a> {
    /// The text before the first slash.
    pub authority: &'a str,
    /// The text between the authority and the query, decoded, without its first slash.
    pub path: String,
    /// The text behind the first question mark.
    pub query: Option<&'a str>,
}

impl<'a> Parts<'a> {
    /// Returns the parts of a URL of one of these schemes, and the number of its scheme.
    ///
    /// # Errors
    ///
    /// The problem, for a [`UrlError`](super::UrlError).
    pub fn of(text: &'a str, schemes: &[&str]) -> Result<(usize, Self), String> {
        if let Some(problem) = strange(text) {
            return Err(problem);
        }
        let rest_of = |scheme: &&str| text.strip_prefix(scheme).and_then(|rest| rest.strip_prefix("://"));
        let found = schemes.iter().enumerate().find_map(|(number, scheme)| Some((number, rest_of(scheme)?)));
        let Some((number, rest)) = found else {
            let begins: Vec<String> = schemes.iter().map(|scheme| format!("{scheme}://")).collect();
            return Err(format!("the URL does not begin with {}", begins.join(" or ")));
        };
        if rest.contains('#') {
            return Err("the URL has a #: write it as %23".to_owned());
        }
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err("credentials do not belong in a URL, set them in the environment".to_owned());
        }
        let path = percent_decode_str(path).decode_utf8().map_err(|_| "the key is not UTF-8")?;
        Ok((number, Self { authority, path: path.into_owned(), query }))
    }
}

/// A key in its URL encoding.
pub fn escaped(key: &str) -> impl fmt::Display {
    utf8_percent_encode(key, ESCAPED)
}

/// The value of a parameter in its URL encoding.
pub(super) fn escaped_value(value: &str) -> impl fmt::Display {
    utf8_percent_encode(value, ESCAPED_VALUE)
}
