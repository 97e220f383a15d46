"""The timings of the elections."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Timings:
    """Durations in milliseconds."""

    lease: int
    renew: int
    retry: int


# The defaults of client-go and of this library.
DEFAULTS = Timings(15_000, 10_000, 2000)
# A fifth of them, so that a run has many trials.
SHORT = Timings(3000, 2000, 400)
