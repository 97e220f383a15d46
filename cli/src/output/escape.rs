//! Text from others, made harmless for a terminal.
//!
//! Identities, keys and error messages may contain any character. A control character could erase a line, forge
//! another one, or change the terminal's title.

use std::fmt::Display;

/// The largest number of characters of a name in a table. An identity that was not checked can have 64 KiB, and the rows
/// of a table are as wide as the widest.
pub(crate) const LONGEST_NAME: usize = 256;

/// The largest number of bytes of a text from others in a variable. No program starts with one of 128 KiB.
const LONGEST_VARIABLE: usize = 4096;

/// Returns the text of a value with every control character escaped, as `\n` or `\u{1b}`.
pub(crate) fn escape(value: impl Display) -> String {
    escaped(&value.to_string(), |text, c| text.extend(c.escape_default()))
}

/// Escapes control characters in a text, and cuts it in its middle if it is longer than `most` characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let name = escape(text);
    let length = name.chars().count();
    if length <= most {
        return name;
    }
    let (head, tail) = (most - most / 2 - 1, most / 2);
    let beginning: String = name.chars().take(head).collect();
    let end: String = name.chars().skip(length - tail).collect();
    format!("{beginning}…{end}")
}

/// Returns a text as a variable can have it: without NUL, and cut if it is long. Who holds or takes a lock chooses the name.
pub(crate) fn for_environment(text: &str) -> String {
    let text = text.replace('\0', "\\0");
    if text.len() <= LONGEST_VARIABLE { text } else { cut(&text, LONGEST_VARIABLE / 4) }
}

/// Writes the control characters of JSON text as JSON escapes, which changes the text and not its meaning.
pub(crate) fn plain_json(json: &str) -> String {
    // JSON escapes a character beyond U+FFFF as the two halves of its UTF-16.
    let halves = |text: &mut String, c: char| {
        c.encode_utf16(&mut [0; 2]).iter().for_each(|half| *text += &format!("\\u{half:04x}"));
    };
    escaped(json, halves)
}

fn escaped(text: &str, escape: impl Fn(&mut String, char)) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control(c) { escape(&mut escaped, c) } else { escaped.push(c) }
    }
    escaped
}

/// Returns `true` for a character that moves the cursor, breaks a line, reorders text, or shows nothing: the categories Cc,
/// Cf, Zl and Zp of Unicode but for the marks of Arabic and other numbers, and all that is `Default_Ignorable_Code_Point`.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_others_are_not() {
        for (text, shown) in [
            ("node-1", "node-1"),
            ("naïve \"café\" e\u{301} \\ 🦀", "naïve \"café\" e\u{301} \\ 🦀"),
            ("a\r\nb\tc", r"a\r\nb\tc"),
            ("\u{1b}]0;title\u{7}", r"\u{1b}]0;title\u{7}"),
            ("\u{9b}2J\u{7f}", r"\u{9b}2J\u{7f}"),
            ("\u{202e}txt.exe\u{2069}\u{2028}", r"\u{202e}txt.exe\u{2069}\u{2028}"),
            ("a\u{61c}b\u{200b}c\u{200d}d\u{feff}e", r"a\u{61c}b\u{200b}c\u{200d}d\u{feff}e"),
            ("a\u{e0001}\u{e0041}\u{fe0f}\u{2062}\u{3164}\u{ad}", r"a\u{e0001}\u{e0041}\u{fe0f}\u{2062}\u{3164}\u{ad}"),
            ("नोड 节点 עברית \u{a0}x", "नोड 节点 עברית \u{a0}x"),
        ] {
            assert_eq!(escape(text), shown);
        }
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({ "name": "a\u{9b}b\u{202e}\u{7f}\n\u{1b}é\u{61c}\u{e0041}" });
        let shown = plain_json(&value.to_string());
        assert!(!shown.chars().any(is_control), "{shown:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn long_names_are_cut_in_the_middle() {
        assert_eq!(cut("node-1", 6), "node-1");
        assert_eq!(cut("node-12345", 6), "no…345");
        assert_eq!(cut("ééééééé", 4), "é…éé");
    }

    #[test]
    fn a_variable_has_no_nul_and_is_short_enough_to_start_a_program() {
        assert_eq!(for_environment("a\0b\u{200d}"), "a\\0b\u{200d}");
        for name in ["\0", "\u{e0041}", "é", "🦀"] {
            let variable = for_environment(&name.repeat(64 * 1024));
            assert!(variable.len() <= LONGEST_VARIABLE && variable.contains('…'), "{}", variable.len());
        }
    }
}
