//! Error messages that include all causes.

use std::error::Error;

/// Returns the message of an error and the messages of its causes on one line, for logs and for people.
///
/// The message of a [`LockError`](crate::LockError) names only the action and the lock. The cause is its
/// [`source`](Error::source).
///
/// ```
/// use leaderelection::causes::with_causes;
/// use leaderelection::{LockError, StoreErrorKind};
///
/// let error = LockError::new(StoreErrorKind::Ambiguous, "cannot read lock", "s3://bucket/key", "timed out");
/// assert_eq!(error.to_string(), "cannot read lock s3://bucket/key");
/// assert_eq!(with_causes(&error), "cannot read lock s3://bucket/key: timed out");
/// ```
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    one_line(&text, usize::MAX)
}

/// Makes a text of unknown origin safe for logs and terminals, where it could hide or fake other lines. Returns at most
/// `most_characters` of it, on one line. Line breaks, control characters and characters that change the order of others
/// become spaces, and spaces in a row become one.
///
/// ```
/// use leaderelection::causes::one_line;
///
/// assert_eq!(one_line("<html>\r\n  <p>502\u{1b}[31m Bad Gateway", 20), "<html> <p>502 [31m B…");
/// ```
#[must_use]
pub fn one_line(text: &str, most_characters: usize) -> String {
    let is_space = |character: char| character.is_whitespace() || character.is_control() || reorders(character);
    let mut line = String::new();
    let mut length = 0;
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        let space = if line.is_empty() { None } else { Some(' ') };
        for character in space.into_iter().chain(word.chars()) {
            if length == most_characters {
                line.push('…');
                return line;
            }
            line.push(character);
            length += 1;
        }
    }
    line
}

/// Returns `true` for the characters that change the order in which a terminal shows the others.
fn reorders(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_others_is_one_line_of_limited_length() {
        assert_eq!(one_line("", 10), "");
        assert_eq!(one_line(" \r\n\t", 10), "");
        assert_eq!(one_line("ten chars.", 10), "ten chars.");
        assert_eq!(one_line("eleven char", 10), "eleven cha…");
        assert_eq!(one_line("a\u{7}b\u{2028}c\u{202e}d\u{9b}e", 10), "a b c d e");
        assert_eq!(one_line(&"ä".repeat(500_000), 200).chars().count(), 201);
    }
}
