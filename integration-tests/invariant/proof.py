"""Shows that the invariant of a system holds at the start, that every action keeps it, and that it implies the goals."""

from z3 import Not, Solver, unsat

# Z3's own measure of work, which does not depend on the machine. A proof needs less than a tenth of it.
LIMIT = 20_000_000


def failures(system):
    """The number of obligations, and those that Z3 does not confirm."""
    before = system.state()
    beginning = system.state()
    system.start(beginning)
    assumed = [each.of(before) for each in system.invariant]
    cases = [("at the start", beginning.required, beginning, system.invariant), ("", assumed, before, system.goals)]
    for action in system.actions:
        after = before.after(action, *action.elements("!"))
        cases.append((f"after {action.name}", assumed + after.required, after, system.invariant))
    count, failed = 0, []
    for when, facts, state, formulas in cases:
        facts = [*system.always, *facts]
        for formula in formulas:
            claim = formula.of(state)
            count += 1
            if (answer := refuted([*facts, Not(claim)])) != unsat:
                failed.append(f"{formula.name} {when}: {answer}")
            elif formulas is system.goals:
                # A goal may rest on those before it.
                facts.append(claim)
    return count, failed


def refuted(facts):
    """Whether facts contradict each other. Z3 finds most contradictions sooner without a search for models."""
    for searches in (False, True):
        solver = Solver()
        solver.set("rlimit", LIMIT)
        solver.set("smt.mbqi", searches)
        solver.add(*facts)
        if (answer := solver.check()) == unsat:
            break
    return answer
