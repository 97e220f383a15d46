"""The step from clocks of nodes to the times of lease.py and sessions.py, in which D(w) and L(w) are real durations."""

from z3 import And, Implies, Not, Real, Reals, Solver

# The rates of all clocks are between these two, in seconds of a clock per real second.
slowest, fastest = Reals("slowest fastest")
deadline, lease = Reals("deadline lease")
bound = And(0 < slowest, slowest <= fastest, 0 <= deadline, lease * slowest >= deadline * fastest)


def passes(clock, real):
    """A clock may pass this much in so much real time, whatever it does in between."""
    return And(real >= 0, slowest * real <= clock, clock <= fastest * real)


def refutation(assumed):
    """A window that is open for longer than a wait lasts, if there is one.

    The window of a write is open while less than a deadline has passed on its writer's clock. A wait is over when a lease has
    passed on the clock of another. So the longest real duration of all windows is D(w), and the shortest of all waits is L(w).
    """
    window, wait, on_writers, on_others = Reals("window wait on_writers on_others")
    solver = Solver()
    solver.add(assumed, passes(on_writers, window), on_writers < deadline)
    solver.add(passes(on_others, wait), on_others >= lease, window >= wait)
    return solver.check()
