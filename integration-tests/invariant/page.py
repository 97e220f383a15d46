"""docs/invariant.md, and majority.md beside this file, as the input of the proof: their formulas, and the place of each rule of docs/protocol.md."""

import re
from pathlib import Path

import kernel
from formulas import Formula

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DOCS, SOURCE = ROOT / "docs", ROOT / "leaderelection/src"


FORMULA = re.compile(r"`(\w+)`(?: \(([^)]*)\))?: ([^`]*)\\ `([^`]*)`")


def items(page, name):
    """The items of the list below a mark, each on one line."""
    listed = re.search(rf"<!-- {name} -->\n\n((?:- .*\n(?:  .*\n)*)+)", page)[1]
    return [" ".join(item.split()) for item in re.split(r"^- ", listed, flags=re.M)[1:]]


def formulas(page, name):
    """The name, the rules, the meaning in words and the text of each formula of a list."""
    for item in items(page, name):
        if not (found := FORMULA.fullmatch(item)):
            raise ValueError(f"docs/invariant.md or majority.md: no formula with a name, words and a text: {item}")
        yield found[1], found[2].split(", ") if found[2] else [], found[3], found[4]


def read(system, name, page):
    """Gives a system the formulas of the page."""
    for kind, known in (("goals", system.goals), ("invariant", system.invariant)):
        known += (Formula(system, title, words, text, rules) for title, rules, words, text in formulas(page, f"{name}: {kind}"))


def spread(names):
    """The rules that a text like "Q1 to Q6, S7" is about."""
    for name in names.split(", "):
        first, _, last = name.partition(" to ")
        letter = first.rstrip("0123456789")
        yield from (f"{letter}{number}" for number in range(int(first[len(letter) :]), int((last or first)[len(letter) :]) + 1))


def places(protocol):
    """The section that names the files of the rules."""
    return protocol.split("\n## Where each rule is\n")[-1]


def rules(protocol):
    """The numbers of all rules, each with the first file of its line in the list of files."""
    numbers = re.findall(r"^(?:- \*\*(?=[A-Z]))?([A-Z]?\d+)\. ", protocol, re.M)
    rows = re.findall(r"^- ([^`:]+): `([^`]+)`", places(protocol), re.M)
    files = {number: file for names, file in rows if re.match(r"[A-Z]?\d", names) for number in spread(names.strip())}
    return {number: files.get(number) for number in numbers}


def functions(system, name, page):
    """The actions of a system that name no function of the kernel, if the page lists them."""
    if f"<!-- {name}: actions -->" not in page:
        return
    source = "".join(file.read_text() for file in kernel.KERNEL.rglob("*.rs"))
    named = {}
    for item in items(page, f"{name}: actions"):
        names, places = item.split(": ")
        named |= {name: re.findall(r"`(\w+)`", places) for name in re.findall(r"`(\w+)`", names)}
    for action in system.actions:
        if action.name not in named:
            yield f"docs/invariant.md: the action {action.name} names no function"
    for other in named.keys() - {action.name for action in system.actions}:
        yield f"docs/invariant.md: there is no action {other}"
    for place in sorted({place for places in named.values() for place in places}):
        if f"fn {place}(" not in source and f"fn {place}<" not in source:
            yield f"docs/invariant.md: the kernel has no function {place}"


def mistakes(systems, broken, page, protocol):
    """Rules that have no place, no file, or nothing that breaks them, and formulas that no rule keeps."""
    known = rules(protocol)
    conjuncts = [each for system in systems for each in system.invariant]
    actions = [each for system in systems for each in system.actions]
    placed = {rule for each in (*conjuncts, *actions) for rule in each.rules}
    elsewhere = {rule for item in items(page, "elsewhere") for rule in spread(item.split(": ")[0])}
    for rule in known:
        if (rule in placed) == (rule in elsewhere):
            yield f"rule {rule} has {'two places' if rule in placed else 'no place'}: a system, or the last list of docs/invariant.md"
    for rule in sorted((placed | elsewhere) - known.keys()):
        yield f"there is no rule {rule} in docs/protocol.md"
    written, lines = items(protocol, "kernel"), list(kernel.lines())
    yield from (f"docs/protocol.md: the list of the kernel's functions needs this line: - {line}" for line in lines if line not in written)
    yield from (f"docs/protocol.md: the comments of the kernel do not say: - {line}" for line in written if line not in lines)
    listed = re.findall(r"`([\w/]+\.rs)`", places(protocol))
    yield from (f"docs/protocol.md: there is no {file}" for file in listed if not any((folder / file).exists() for folder in (SOURCE, ROOT, kernel.KERNEL)))
    yield from (f"nothing breaks rule {rule}" for rule in sorted(placed - {each.rule for each in broken}))
    yield from (f"{each.name}: no rule keeps it" for each in conjuncts if not each.rules)
    for rule in sorted({rule for each in conjuncts for rule in each.rules} & known.keys()):
        if not known[rule]:
            yield f"docs/protocol.md: rule {rule} has no file"
