//! Texts that are URLs with something beside them.

use leaderelection::names;

/// Returns what a text has that its writer has not meant: a character that nobody sees, or what the reader of a file of
/// variables was expected to take away.
pub fn strange(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some(
            "the URL is empty; if a variable sets it, remove the line feed (U+000A) at the variable's end".to_owned(),
        );
    }
    if let Some(problem) = names::problem_with(text) {
        return Some(format!("the URL {problem}"));
    }
    if let Some(mark @ ('"' | '\'')) = text.chars().next() {
        return Some(format!("the URL begins with a quotation mark ({mark}); leave the quotation marks out"));
    }
    let is_variable = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let (name, _) = text.split_once('=')?;
    is_variable(name).then(|| "the URL begins with the name of a variable and =; leave these out".to_owned())
}
