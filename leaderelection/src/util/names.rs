//! Rejects names with invisible characters.
//!
//! Names that look the same must be the same. If a variable comes from a Windows file, a carriage return at its end
//! would silently name another lock. So keys, identities, services, jobs and prefixes must not have invisible
//! characters.

/// Returns the problem with a name: its first invisible character and the place of that. `None` if it has none.
///
/// These characters count as invisible: control characters, characters without a width (e.g. a byte order mark), and
/// white space. A plain space is allowed between other characters, but not at an end of the name, nor beside a `/`.
///
/// ```
/// use leaderelection::names::problem_with;
///
/// assert_eq!(problem_with("night shift"), None);
/// assert_eq!(problem_with("scheduler\r").as_deref(), Some("ends with U+000D (a carriage return); leave that out"));
/// ```
#[must_use]
pub fn problem_with(name: &str) -> Option<String> {
    let chars: Vec<char> = name.chars().collect();
    let last = chars.len().saturating_sub(1);
    let is_end = |beside: Option<&char>| beside.is_none_or(|beside| *beside == '/');
    let is_at_an_end = |at: usize| is_end(at.checked_sub(1).map(|at| &chars[at])) || is_end(chars.get(at + 1));
    let is_wrong = |(at, c): &(usize, char)| is_hidden(*c) || (*c == ' ' && is_at_an_end(*at));
    let (at, hidden) = chars.iter().copied().enumerate().find(is_wrong)?;
    let place = match at {
        0 => "begins with".to_owned(),
        _ if at == last => "ends with".to_owned(),
        _ => format!("has, as character {},", at + 1),
    };
    let called = called(hidden).map(|name| format!(" ({name})")).unwrap_or_default();
    Some(format!("{place} U+{:04X}{called}; leave that out", u32::from(hidden)))
}

/// Returns `true` for an invisible character, or one that looks like a space but is not the plain one.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control() || (c.is_whitespace() && c != ' ') || is_ignorable(c)
}

/// The characters that Unicode calls ignorable by default, and those that change the order or the form of others.
fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The name of an invisible character that often gets into names by accident.
fn called(c: char) -> Option<&'static str> {
    Some(match c {
        '\0' => "NUL",
        '\t' => "a tab",
        '\n' => "a line feed",
        '\r' => "a carriage return",
        ' ' => "a space",
        '\u{a0}' => "a no-break space",
        '\u{ad}' => "a soft hyphen",
        '\u{200b}' => "a zero-width space",
        '\u{200c}' => "a zero-width non-joiner",
        '\u{200d}' => "a zero-width joiner",
        '\u{202f}' => "a narrow no-break space",
        '\u{2060}' => "a word joiner",
        '\u{3000}' => "an ideographic space",
        '\u{feff}' => "a byte order mark",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_see_is_accepted() {
        for name in ["", "a", "a b", "node-1_x", "2026-11-22T10:00", "über/ночь/夜間", "हिन्दी", "a?#%\"'`"]
        {
            assert_eq!(problem_with(name), None, "{name:?}");
        }
    }

    #[test]
    fn what_nobody_sees_is_named_with_its_place() {
        for (name, problem) in [
            ("a\r", "ends with U+000D (a carriage return)"),
            ("a\r\n", "has, as character 2, U+000D"),
            ("a\n", "ends with U+000A (a line feed)"),
            (" a", "begins with U+0020 (a space)"),
            ("a ", "ends with U+0020"),
            (" ", "begins with U+0020"),
            ("a /b", "has, as character 2, U+0020"),
            ("a/ b", "has, as character 3, U+0020"),
            ("\u{feff}a", "begins with U+FEFF (a byte order mark)"),
            ("a\u{200b}", "ends with U+200B (a zero-width space)"),
            ("a\u{200b}b", "has, as character 2, U+200B"),
            ("a\u{a0}b", "has, as character 2, U+00A0 (a no-break space)"),
            ("ä\u{2028}b", "has, as character 2, U+2028;"),
            ("a\u{9b}b", "has, as character 2, U+009B;"),
            ("a\u{202e}b", "has, as character 2, U+202E;"),
            ("a\u{e0020}", "ends with U+E0020;"),
        ] {
            let found = problem_with(name).unwrap_or_default();
            assert!(found.starts_with(problem), "{name:?}: {found}");
        }
    }
}
