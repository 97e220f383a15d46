"""Takes the words that people read out of Rust sources: comments, messages, flags, and the names of definitions."""

import re

import english

# A comment, a string or a character; whatever is none of them is code.
TOKEN = re.compile(
    r"""(?P<comment>^[ \t]*//[^\n]*(?:\n[ \t]*//[^\n]*)*|//[^\n]*)|r(?P<hashes>\#*)"(?P<raw>.*?)"(?P=hashes)"""
    r"""|"(?P<string>(?:[^"\\]|\\.)*)"|'(?:[^'\\\n]|\\[^\n]{1,9})'""",
    re.M | re.S,
)
DEFINITION = re.compile(r"\b(?:struct|enum|union|trait|fn|mod|type|const|static) (?:mut )?(\w+)")
FLAG = re.compile(r"#\[(?:arg|clap)\([^\]]*\blong\b(?! =)[^\]]*\)\]\s*(?:pub(?:\([^)]*\))? )?(\w+):")
LONG = re.compile(r'\blong = "([^"]*)"')
CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def sentences(rust):
    """The sentences of a source file. A message is a string with a space, and counts without the values in it. A name counts by
    its words."""
    code = []
    end = 0
    for token in TOKEN.finditer(rust):
        code.append(rust[end : token.start()])
        end = token.end()
        if token["comment"]:
            yield from english.sentences(re.sub(r"^\s*//[/!]?", "", token["comment"], flags=re.M))
            continue
        text = token["raw"] if token["string"] is None else token["string"]
        if text and " " in text.strip():
            yield " ".join(re.sub(r"\{[^{}]*\}|\\n|\\\n", " ", text).split())
    names = DEFINITION.findall("".join(code)) + FLAG.findall(rust) + LONG.findall(rust)
    yield from (CAPITAL.sub(" ", name).replace("_", " ").replace("-", " ") for name in names)
