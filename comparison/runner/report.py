"""The page: tables, plots, and the rows in which a peer is better."""

import shutil

from . import rows, words
from .contestants import CONTESTANTS, NEVER
from .faults import FAULTS
from .plot import plot
from .session import not_possible

__all__ = ["not_possible", "write"]


def write(folder, trials, idle, facts):
    """Writes comparison.md, and the plots and raw numbers in a folder beside it."""
    beside = folder / "comparison"
    beside.mkdir(parents=True, exist_ok=True)
    for table in (trials, idle):
        if table.path.parent != beside:
            shutil.copy(table.path, beside / table.path.name)
    parts = [words.TITLE, first_paragraph(trials, idle), words.introduction(facts)]
    for fault in FAULTS:
        parts += section(fault, trials, beside)
    parts += [words.at_rest(idle), idle_table(idle), words.IDLE_AFTER]
    parts += [words.SKIPPED, skipped(trials, facts), f"{words.METHOD}{conditions(facts)}"]
    (folder / "comparison.md").write_text("\n\n".join(part.strip("\n") for part in parts if part) + "\n")


def first_paragraph(trials, idle):
    """Every row in which a peer does better than this library does on the same store, and the mechanism."""
    better = [*rows.better_after_faults(trials), *rows.better_at_rest(idle)]
    if not better:
        return f"In no row of this page is a peer better than this library is on the same store. {words.BETTER}"
    lines = [f"A peer is better than this library is on the same store in the rows below, by the mechanisms that stand above them. "
             f"{words.BETTER}", ""]
    reasons = {}
    for row in better:
        mechanism = words.mechanism(row)
        if not mechanism:
            print(f"not explained yet: {row.row}, {row.peer}: add the mechanism to comparison/runner/words.py", flush=True)
        found = reasons.setdefault(mechanism or "The mechanism is not explained yet.", {})
        found.setdefault((row.where, row.price), []).append(row.number)
    for mechanism, found in reasons.items():
        lines += [f"- {mechanism}", *(f"  - {where}: {', '.join(numbers)}{price}." for (where, price), numbers in found.items())]
    return "\n".join(lines)


def section(fault, trials, beside):
    found = [(each, trials.of(each.key, fault.key)) for each in CONTESTANTS]
    found = [(each, measured) for each, measured in found if measured]
    if not found:
        return []
    title, text = words.FAULTS[fault.key]
    lines = [f"| | trials | median | 99 of 100 | worst | {words.EXTRA[fault.key]} | wrong entries | longest overlap |",
             "|---|--:|--:|--:|--:|--:|--:|--:|"]
    lines += [rows.line(each, fault, measured) for each, measured in found]
    picture = plot(f"Time without a working leader: {title[0].lower()}{title[1:]}",
                   f"Every dot is a trial, the mark is the median; lease {fault.timings.lease / 1000:g} s. The table counts overlaps.",
                   [(each.title, each.is_ours, rows.pauses(measured)) for each, measured in found])
    (beside / f"{fault.key}.svg").write_text(picture)
    kinds = [rows.by_driver(each, measured) for each, measured in found]
    return [f"## {title}", text, "\n".join(lines), *filter(None, kinds), f"![{words.alt(title, found)}](comparison/{fault.key}.svg)"]


def idle_table(idle):
    lines = ["| | leader, requests an hour | follower, requests an hour | dollars a month | follower, processor ms a minute "
             "| follower, MiB |", "|---|--:|--:|--:|--:|--:|"]
    lines += filter(None, (rows.idle_line(each, idle) for each in CONTESTANTS))
    return "\n".join(lines)


def skipped(trials, facts):
    lines = [f"- {name}: {why}." for name, why in sorted((NEVER | facts.values["skipped"]).items())]
    for fault in FAULTS:
        for each in CONTESTANTS:
            why = not_possible(each, fault)
            if why and each.key not in facts.values["skipped"]:
                lines.append(f"- {each.title}, {fault.title}: {why}.")
    for each in CONTESTANTS:
        if each.key not in facts.values["skipped"] and not trials.of(each.key):
            lines.append(f"- {each.title}: this run did not include it.")
    return "\n".join(lines)


def conditions(facts):
    phases = facts.values["phases"]
    conditions = facts.values["conditions"]
    lines = [f"- Measured on {facts.values['measured']}, on {conditions['machine']}."]
    for name, text in (("trials", "The trials"), ("idle", "The idle elections")):
        if name in phases:
            minutes, busy = phases[name]["seconds"] / 60, phases[name]["busy"] * 100
            lines.append(f"- {text} took {minutes:.0f} minutes, in which the processors were busy for {busy:.0f} % of the time.")
    lines += [f"- {line}" for line in conditions["versions"]]
    return "\n".join(lines)
