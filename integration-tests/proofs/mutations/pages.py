"""The tables of mutations, which are written from the rows, and their number in the documents."""

import re

from rows import HERE, ROOT

PAGE = HERE / "README.md"
MARKED = re.compile(r"(<!-- mutations: ([\w-]+) -->\n)(.*?)(<!-- end of mutations -->\n)", re.S)
SUMMARY = ROOT / "docs/correctness.md"
COUNTED = re.compile(r"(<!-- number of mutations -->\n)(.*?)(<!-- end of the number -->\n)", re.S)


def written(page, tables):
    """The text of a page with the tables that its markers name, and the areas of which it has no table."""
    areas = [found[2] for found in MARKED.finditer(page)]
    unknown = set(areas) - tables.keys()
    text = MARKED.sub(lambda found: found[0] if found[2] in unknown else found[1] + table(*tables[found[2]]) + found[4], page)
    return text, tables.keys() - set(areas), unknown


def counted(page, tables):
    """The text of a page with the number of mutations between its markers, or nothing if it has no markers."""
    numbers = {area: len(rows) for area, (_, rows) in tables.items()}
    areas = ", ".join(f"{area} {number}" for area, number in numbers.items())
    text, places = COUNTED.subn(lambda found: f"{found[1]}\n{sum(numbers.values())} mutations: {areas}.\n\n{found[3]}", page)
    return text if places else None


def table(defaults, rows):
    columns = {"mutation": lambda row: f"`{row.name}`", "what is broken": lambda row: row.promise}
    if "not_modelled" not in defaults:
        columns["model"] = lambda row: shown(row.question, row.not_modelled)
    if "not_simulated" not in defaults:
        columns["simulation"] = lambda row: shown(row.oracle, row.not_simulated)
    if any(row.test for row in rows):
        columns["test"] = lambda row: f"`{row.test.split('::')[-1]}`" if row.test else ""
    lines = [columns, ["---"] * len(columns), *([cell(row) for cell in columns.values()] for row in rows)]
    return "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def shown(promise, why_not):
    return f"`{promise}`" if isinstance(promise, str) else why_not or "–"
