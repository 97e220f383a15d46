"""What `check` does. Everything that is wrong is a line at the end."""

import sys

import z3

import clocks
import page
import proof
from broken import BROKEN
from lease import lease
from majority import majority
from sessions import sessions
from stories import Run

SYSTEMS = {"lease": lease, "sessions": sessions, "majority": majority}
PAGE = "\n".join(file.read_text() for file in (page.DOCS / "invariant.md", page.HERE / "majority.md"))
PROTOCOL = (page.DOCS / "protocol.md").read_text()
for name, system in SYSTEMS.items():
    page.read(system, name, PAGE)


def unreachable(system):
    """The actions that the example of a system does not show to happen before somebody leads."""
    run = Run(system, system.example)
    leads = [run.states[-1].leads(each) for each in run.elements if each.sort() == system.leads]
    shown = {"wait", *system.example.split()} if run.ends(z3.Or(leads)) else set()
    return [f"{action.name} is in no run" for action in system.actions if action.name not in shown]


def mistakes(deep):
    yield from page.mistakes(SYSTEMS.values(), BROKEN, PAGE, PROTOCOL)
    if clocks.refutation(clocks.bound) != z3.unsat:
        yield "clocks: a window may outlast a wait"
    for name, system in SYSTEMS.items():
        count, failed = proof.failures(system)
        size = f"{len(system.actions)} actions, {len(system.invariant)} conjuncts"
        print(f"{name}: {size}, {count - len(failed)} of {count} obligations hold", flush=True)
        yield from (f"{name}: {each}" for each in [*failed, *unreachable(system)])
        yield from page.functions(system, name, PAGE)
    for mutation in BROKEN if deep else []:
        yield from mutation.mistakes()


if __name__ == "__main__":
    found = [f"violated: {each}" for each in mistakes(sys.argv[1:] == ["--deep"])]
    print("\n".join(found), end="\n" * bool(found))
    sys.exit(bool(found))
