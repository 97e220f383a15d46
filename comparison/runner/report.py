"""The page: the tables, the picture, and the numbers in which a peer is better."""

import shutil

from . import rows, words
from .contestants import CONTESTANTS, NEVER
from .faults import FAULTS
from .plot import Line, plot
from .session import TRIALS, missing, not_possible
from .timings import SHORT

__all__ = ["absent", "not_possible", "write"]

# The first table has these faults, and the other table has the rest.
FIRST = ("kill", "stop")
PICTURE = "leaders.svg"


def absent(trials, idle):
    """The parts of a whole comparison that were not measured, in words."""
    parts = []
    for each in CONTESTANTS:
        if each.is_extra:
            continue
        left = len(missing(trials, each, FAULTS, TRIALS))
        if left:
            parts.append(f"{left} trials of {each.key}")
        # Candidates of two kinds are not compared at rest.
        if rows.is_alike(each) and not idle.has(each.key, "follower"):
            parts.append(f"{each.key} at rest")
    return parts


def write(folder, trials, idle, facts):
    """Writes comparison.md, and in a folder beside it the picture, the raw numbers and the facts of the run."""
    beside = folder / "comparison"
    beside.mkdir(parents=True, exist_ok=True)
    for file in (trials, idle, facts):
        if file.path.parent != beside and file.path.exists():
            shutil.copy(file.path, beside / file.path.name)
    (beside / PICTURE).write_text(picture(trials))
    parts = [
        words.TITLE, summary(trials, idle), rows.verdict(trials), words.LEGEND, f"![{words.ALT}](comparison/{PICTURE})", older(facts),
        words.OTHER_FAULTS, other_faults(trials), two_leaders(trials), shared(trials),
        words.BETTER, better(trials, idle),
        f"{words.method(facts).rstrip()}\n{skipped(trials, facts)}\n{conditions(facts)}",
    ]
    (folder / "comparison.md").write_text("\n\n".join(part.strip("\n") for part in parts if part) + "\n")


def summary(trials, idle):
    return "\n".join([words.SUMMARY_HEAD, *filter(None, (rows.summary_line(each, trials, idle) for each in CONTESTANTS))])


def picture(trials):
    lines = []
    for each in CONTESTANTS:
        measured = [row for row in trials.of(each.key) if row["lease_ms"] == str(SHORT.lease)]
        kills, stops = (rows.pauses(rows.with_one_leader(trials.of(each.key, fault))) for fault in FIRST)
        if measured:
            lines.append(Line(each.title, each.is_ours, rows.overlaps(measured), kills, stops))
    return plot(words.PICTURE, words.PICTURE_NOTE.format(lease=SHORT.lease / 1000), lines)


def older(facts):
    """The parts of the published figures that a change since has made old."""
    return " ".join(facts.values.get("older", []))


def unexplained(where):
    print(f"not explained yet: {where}: add the mechanism to comparison/runner/words.py", flush=True)
    return "The mechanism is not explained yet."


def better(trials, idle):
    """Every number in which a peer does better than this library does on the same store, and the mechanism."""
    found = [*rows.better_after_faults(trials), *rows.better_at_rest(idle)]
    if not found:
        return words.NONE_BETTER
    titles = {each.key: each.title.removesuffix(", Lease") for each in CONTESTANTS}
    reasons = {}
    for row in found:
        reason = words.mechanism(row) or unexplained(f"{row.row}, {row.peer}")
        where = ", ".join(filter(None, (titles[row.peer], fault.lower() if (fault := words.heading(row.row)) else None)))
        reasons.setdefault(reason, {}).setdefault(where, []).append(row.number)
    lines = [words.BETTER_LEAD, ""]
    for reason, numbers in reasons.items():
        said = "; ".join(f"{where}: {', '.join(each)}" for where, each in numbers.items())
        lines.append(f"- {reason} *{said}.*")
    return "\n".join(lines)


def other_faults(trials):
    """The table of the faults that the first one has not, and a list. Lost answers have no times: a leader is lost, or not."""
    faults = [fault.key for fault in FAULTS if fault.key not in (*FIRST, "lost")]
    lines = [f"| | {' | '.join(words.FAULTS[each][0] for each in faults)} |", f"|---|{'--:|' * len(faults)}"]
    lines += rows.fault_lines(trials, faults)
    said = [f"- {title}: {text}" for title, text in map(words.FAULTS.get, faults)]
    title, text = words.FAULTS["lost"]
    return "\n".join([*lines, "", *said, f"- {title} (no column): {text} {rows.lost_leases(trials)}"])


def two_leaders(trials):
    reasons = {}
    for fault in FAULTS:
        for each in CONTESTANTS:
            if rows.with_two_leaders(trials.of(each.key, fault.key)):
                reason = words.overlap(fault.key, each.key) or unexplained(f"two leaders, {fault.key}, {each.key}")
                found = reasons.setdefault(reason, {})
                # The default timings are another setting of the same fault.
                found.setdefault(words.like(fault.key)[1], words.FAULTS[fault.key][0])
    lines = [f"- {', '.join(faults.values())}: {reason}" for reason, faults in reasons.items()]
    return "\n".join([words.TWO_LEADERS_LEAD, "", *lines]) if lines else None


def shared(trials):
    """The kinds of leaders on one lock."""
    return "\n".join(said for each in CONTESTANTS if (said := rows.by_driver(each, trials.of(each.key))))


def skipped(trials, facts):
    lines = [f"- Skipped: {name}, because {why}." for name, why in sorted((NEVER | facts.values["skipped"]).items())]
    reasons = {}
    for each in CONTESTANTS:
        if each.key in facts.values["skipped"] or each.is_extra and not trials.of(each.key):
            continue
        if not trials.of(each.key):
            lines.append(f"- Skipped: {each.title}, because this run did not include it.")
        for fault in FAULTS:
            # A reason of this machine says nothing of trials that another one has measured.
            if not fault.needs_network and not trials.of(each.key, fault.key) and (why := not_possible(each, fault)):
                reasons.setdefault((each.title, why), []).append(words.FAULTS[fault.key][0].lower())
    lines += [f"- Skipped: {title}, {' and '.join(faults)}, because {why}." for (title, why), faults in reasons.items()]
    return "\n".join(lines)


def conditions(facts):
    conditions = facts.values["conditions"]
    line = f"- Measured on {facts.values['measured']}, on {conditions['machine']}."
    if trials := facts.values["phases"].get("trials"):
        line += f" The CPUs were {trials['busy'] * 100:.0f} % busy meanwhile."
    lines = [line, *map(apart, facts.values.get("apart", []))]
    return "\n".join([*lines, f"- {' '.join(conditions['versions'])}"])


def apart(run):
    """Where and when a contestant was measured that is not of the run of all others."""
    title = next(each.title for each in CONTESTANTS if each.key == run["contestant"])
    return (f"- {title}: measured alone, on {run['measured']}, on {run['machine']}. The CPUs were "
            f"{run['busy'] * 100:.0f} % busy meanwhile, also with other programs.")
