"""Holds every page and every source to the words of docs/glossary.md. Run by docs/check/run."""

import collections
import re
import unittest
from pathlib import Path

import english
import rust
from repository import DOCS, ROOT, files, table

# The texts that the check reads, and what takes the sentences out of each.
SOURCES = {"*.md": english.sentences, "*.rs": rust.sentences}

# Files that do not keep to the glossary yet, and why. This list only shrinks: mend a file, and remove its line.
EXCEPTIONS = {
    "CHANGELOG.md": "a history of what was said then",
    "docs/invariant.md": "its items are the text of the proof's formulas, with the names of the kernel",
    "integration-tests/invariant/majority.md": "likewise",
}


def forbidden():
    """Forbidden text -> the word to write, from the tables of the glossary."""
    rows = [row for heading in ("## Terms", "## English") for row in table(DOCS / "glossary.md", heading)]
    words = collections.Counter(word for row in rows for word in re.findall(r"`([^`]+)`", row[-1]))
    assert max(words.values()) == 1, f"forbidden twice: {words.most_common(1)}"
    return {word: row[0].replace("*", "") for row in rows for word in re.findall(r"`([^`]+)`", row[-1])}


def pattern(word):
    """Finds a word, also in the plural or as another form of a regular verb."""
    return re.compile(rf"\b{re.escape(word)}(?:e?s|e?d)?\b", re.I)


def mistakes(sentences, words):
    """The sentences with a forbidden word, and the words to write."""
    patterns = [(pattern(word), word, instead) for word, instead in words.items()]
    for sentence in sentences:
        yield from (f"{word!r}, write {instead!r}: {sentence}" for each, word, instead in patterns if each.search(sentence))


# Forbidden are the words of the comment, of the message, of three names and of a flag.
SOURCE = r"""
/// A write that `land` wrote may land, in
/// place of another.
///
/// ```
/// land();
/// ```
struct LandedWrite;
fn may_land(land: u8) -> char {
    tracing::info!(land, "it landed, or \"did not\": {land}");
    record("landed", '"')
}
#[arg(long, default_value_t = 1)]
pub(crate) take_back: u8,
"""


class Words(unittest.TestCase):
    def test_the_glossary_has_the_words_that_are_used(self):
        words = forbidden()
        found, clean = [], set(EXCEPTIONS)
        for glob, sentences in SOURCES.items():
            paths = files(glob)
            self.assertTrue(paths, glob)
            for path in paths:
                name = str(path.relative_to(ROOT))
                wrong = list(mistakes(sentences(path.read_text()), words))
                if name not in EXCEPTIONS:
                    found += [f"{name}: {each}" for each in wrong]
                elif wrong:
                    clean.discard(name)
        self.assertEqual(found, [], "words that docs/glossary.md forbids:\n" + "\n".join(found))
        self.assertEqual(clean, set(), "these need no exception any more, or are not there")

    def test_terms_are_in_order_and_forbid_no_term(self):
        terms = [row[0].replace("*", "") for row in table(DOCS / "glossary.md", "## Terms")]
        self.assertEqual(terms, sorted(terms, key=str.lower))
        self.assertEqual(set(terms) & forbidden().keys(), set())

    def test_forbidden_words_are_found_in_prose_alone(self):
        words = {"land": "commit", "take back": "fail-back", "in place of": "instead of"}
        page = "A write that landed, and\none *in place*\nof another. `land`, landlord: island.\n\n```text\nland\n```\n"
        found = [each.split(":")[0] for each in mistakes(english.sentences(page), words)]
        self.assertEqual(found, ["'land', write 'commit'", "'in place of', write 'instead of'"])
        found = [each.split(":")[0] for each in mistakes(rust.sentences(SOURCE), words)]
        self.assertEqual(found, ["'land', write 'commit'", "'in place of', write 'instead of'"] + ["'land', write 'commit'"] * 3 + ["'take back', write 'fail-back'"])
        self.assertEqual(len(list(mistakes(["It takes back", "It had landed", "Whatever lands"], words))), 2)


if __name__ == "__main__":
    unittest.main()
