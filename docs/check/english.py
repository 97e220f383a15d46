"""Splits pages into sentences."""

import re

from markdown_it import MarkdownIt

MARKDOWN = MarkdownIt("commonmark").enable("table")

# The end of a sentence, with the quotes and brackets that close there. Only after a full stop may the next sentence begin with
# a small letter: the sentence then begins with a name.
END = re.compile(r"((?<!\.)\.[\"'”’)\]]*(?=\s)|[.?!…][\"'”’)\]]*(?=\s+[^a-z\s]))\s+")
ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|etc|cf|vs)\.")


def sentences(markdown):
    """Every sentence of a page. A heading, an item of a list and a cell of a table are sentences of their own. Code counts by
    its words, and a link by its text."""
    for block in MARKDOWN.parse(markdown):
        if block.type == "inline":
            text = "".join(map(plain, block.children))
            yield from filter(None, map(str.strip, END.sub(r"\1\n", ABBREVIATIONS.sub(r"\1", text)).split("\n")))


def plain(part):
    if part.type == "code_inline":
        # A full stop in code ends no sentence, and a sentence may begin with code.
        return " ".join(["CODE"] * len(part.content.split()))
    if part.type in ("softbreak", "hardbreak"):
        return " "
    return part.content if part.type == "text" else ""


def words(sentence):
    """The words of a sentence. A dash is no word."""
    return [word for word in sentence.split() if re.search(r"\w", word)]
