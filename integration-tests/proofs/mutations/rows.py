"""The mutations: rows of the tables beside this file, and the places in the source that each of them changes."""

import re
import tomllib
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]

COMMENTS_AND_LITERALS = re.compile(
    r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|\'(?:\\[^\']+|\\\'|[^\'\\])\'', re.S
)
TOKEN = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\[^\']+|\\\'|[^\'\\])\'|\w+|[^\w\s]', re.S)
ITEM = re.compile(
    r"^[ \t]*(?:pub(?:\([^)]*\))?\s+)?(?:(?P<kind>struct|enum|trait|static|const(?!\s+(?:unsafe|fn)\b))\s+(?P<name>\w+)"
    r"|(?P<qualifiers>(?:(?:default|const|async|unsafe)\s+)*)fn\s+(?P<function>\w+)|(?:unsafe\s+)?(?P<impl>impl\b[^{]*))",
    re.M,
)


class Mistake(Exception):
    """A row that does not fit the source."""


@dataclass(frozen=True)
class Item:
    """A function or another item of a file."""

    name: str
    start: int
    end: int
    # The place between the braces of a function that may be written twice, one of which is chosen when the program runs.
    body: tuple[int, int] | None
    # What an iterator yields that a function returns without naming its type.
    yields: str | None = None


@dataclass(frozen=True)
class Edit:
    """A text of one item, and what takes its place."""

    file: str
    function: str
    old: str
    new: str


@dataclass(frozen=True)
class Place:
    """The text that an edit replaces."""

    edit: Edit
    start: int
    end: int
    item: Item


class Row:
    """A mutation."""

    KEYS = {
        "name", "promise", "edit", "model", "question", "not_modelled", "simulation", "conditions", "seed", "not_simulated",
        "test",
    }  # fmt: skip

    def __init__(self, table, values, where):
        self.table, self.where = table, where
        self.name = values.get("name", "")
        edits = values.pop("edit", None) or [{key: values.pop(key, None) for key in ("file", "function", "old", "new")}]
        for key in values.keys() - self.KEYS:
            self.refuse(f"nothing is called `{key}`")
        if not self.name or not values.get("promise"):
            self.refuse("a row has a `name` and a `promise`")
        for edit in edits:
            if edit.keys() != {"file", "function", "old", "new"} or None in edit.values():
                self.refuse("an edit has `file`, `function`, `old` and `new`, and nothing else")
        self.promise = values["promise"]
        self.edits = [Edit(**edit) for edit in edits]
        # The setup in which the model shows it soonest, and the question that it answers then; the oracle that shows it in
        # the simulation; the test that shows it.
        self.setup, self.question = values.get("model"), values.get("question")
        self.oracle, self.test = values.get("simulation"), values.get("test")
        # The conditions under which the simulation shows it, and the seed with which it does.
        self.conditions, self.seed = values.get("conditions", []), values.get("seed")
        self.not_modelled = values.get("not_modelled", table.get("not_modelled"))
        self.not_simulated = values.get("not_simulated", table.get("not_simulated"))
        if not (self.setup or self.oracle or self.test):
            self.refuse("nothing shows it: name a `model` (a setup), a `simulation` (an oracle) or a `test`")
        if not self.test and not (self.setup or self.not_modelled) or not (self.oracle or self.not_simulated or self.test):
            self.refuse("say why, in `not_modelled` or `not_simulated`, where the model or the simulation does not show it")
        if not all(isinstance(text, str) for text in (self.setup or "", self.question or "", self.oracle or "")):
            self.refuse("name the promise: a `question` and a `simulation` are texts")
        if bool(self.setup) != bool(self.question):
            self.refuse("a `model` and a `question` go together: the setup, and the promise that is found broken in it")
        if (self.conditions or self.seed is not None) and not self.oracle:
            self.refuse("`conditions` and a `seed` are a simulation's")

    @property
    def explore(self):
        return self.table.get("explore", ["explore", "election"])

    @property
    def simulate(self):
        return self.table.get("simulate", ["simulate"])

    def refuse(self, why):
        raise Mistake(f"{self.where}: {self.name}: {why}")

    def places(self):
        """The places that this mutation changes."""
        return [self.place(edit) for edit in self.edits]

    def place(self, edit):
        if not (ROOT / edit.file).is_file():
            self.refuse(f"there is no file {edit.file}")
        source = Source.of(edit.file)
        named = [item for item in source.items if item.name == edit.function]
        if not named:
            self.refuse(f"{edit.file} has no function and no other item with the name `{edit.function}`")
        found = source.find(edit.old)
        within = [(start, end) for start, end in found if any(i.start <= start and end <= i.end for i in named)]
        if not within:
            elsewhere = "".join(f"; line {source.line(start)} has it" for start, _ in found)
            line = source.line(named[0].start)
            self.refuse(f"{edit.file}:{line}: `{edit.function}` does not have the old text{elsewhere}")
        if len(within) > 1:
            lines = ", ".join(str(source.line(start)) for start, _ in within)
            self.refuse(f"{edit.file}:{lines}: `{edit.function}` has the old text {len(within)} times: take more of it")
        [(start, end)] = within
        item = source.innermost(start, end)
        if item.name != edit.function:
            self.refuse(f"{edit.file}:{source.line(start)}: the old text is in `{item.name}`, not in `{edit.function}`")
        if not (item.body and item.body[0] <= start and end <= item.body[1]):
            self.refuse(f"{edit.file}:{source.line(start)}: only the body of a function may be written twice")
        return Place(edit, start, end, item)


class Source:
    """A file of the source."""

    of = staticmethod(cache(lambda file: Source((ROOT / file).read_text())))

    def __init__(self, text):
        self.text = text
        # Braces that are no braces would end an item too early.
        code = COMMENTS_AND_LITERALS.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
        self.ends = matching(code)
        self.items = [item for found in ITEM.finditer(code) if (item := self.item(code, found))]
        self.tokens = tokens_of(text)
        self.joined = joined(self.tokens)
        # Where each token begins in the joined tokens.
        self.starts = [0, *accumulate(len(token[0]) + 1 for token in self.tokens)]
        self.starts_of_lines = [0, *(found.end() for found in re.finditer("\n", text))]

    def item(self, code, found):
        position, signature = found.end(), ""
        # The next brace or semicolon that is not inside of a type ends the item, or is where its body begins.
        while position < len(code) and code[position] not in "{;":
            signature += code[position]
            position = self.ends.get(position, position) + 1
        if position == len(code):
            return None
        body = yields = None
        if code[position] == "{" and found["kind"] not in ("const", "static"):
            opened, position = position, self.ends[position]
            iterator = re.search(r"->\s*impl Iterator<Item = ([^+]*)>\s*$", self.text[found.end() : opened])
            yields = iterator and iterator[1]
            # Two bodies have no common type that nobody names, but for iterators, which may be in boxes.
            has_type = iterator or not re.search(r"->.*\bimpl\b", signature, re.S)
            if found["function"] and "const" not in found["qualifiers"] and has_type:
                body = (opened + 1, position)
        else:
            while code[position] != ";":
                position = self.ends.get(position, position) + 1
        name = found["name"] or found["function"] or " ".join(found["impl"].split())
        return Item(name, found.start(), position + 1, body, yields)

    def find(self, text):
        """The places of a text."""
        searched, found, start = joined(tokens_of(text)), [], -1
        while (start := self.joined.find(searched, start + 1)) >= 0:
            first, last = (bisect_left(self.starts, at) for at in (start, start + len(searched) - 1))
            found.append((self.tokens[first].start(), self.tokens[last - 1].end()))
        return found

    def line(self, position):
        return bisect_right(self.starts_of_lines, position)

    def innermost(self, start, end):
        around = [item for item in self.items if item.start <= start and end <= item.end]
        return max(around, key=lambda item: item.start)


def matching(code):
    """The position of the bracket that closes each bracket."""
    ends, opened = {}, []
    for found in re.finditer(r"[(\[{}\])]", code):
        if found[0] in "([{":
            opened.append(found.start())
        elif opened:
            ends[opened.pop()] = found.start()
    return ends


def tokens_of(text):
    """The tokens of a text. Neither new lines nor comments make another text of it."""
    return [found for found in TOKEN.finditer(text) if not found[0].startswith("//")]


def joined(tokens):
    return "\0" + "\0".join(token[0] for token in tokens) + "\0"


def tables():
    """Every table by its area, without its rows, and its rows."""
    return {path.stem: read(path) for path in sorted(HERE.glob("*.toml"))}


def read(path):
    text = path.read_text()
    table = tomllib.loads(text)
    lines = {found[1]: text.count("\n", 0, found.start()) + 1 for found in re.finditer(r'^name = "(.*)"$', text, re.M)}
    where = path.relative_to(ROOT)
    rows = table.pop("mutation", [])
    return table, [Row(table, values, f"{where}:{lines.get(values.get('name'), 1)}") for values in rows]
