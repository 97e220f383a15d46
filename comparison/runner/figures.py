"""Percentiles, and what differs by chance."""

import math


def percentile(values, share):
    """The smallest value that at least this share of all values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def median_bounds(values):
    """The bounds within which the true median lies with 95 %, by the order of the values."""
    ordered, middle, reach = sorted(values), len(values) / 2, 0.98 * math.sqrt(len(values))
    return ordered[max(0, math.floor(middle - reach))], ordered[min(len(ordered) - 1, math.ceil(middle + reach) - 1)]


def periodic_by_chance(one, other, candidates):
    """The difference that two counts of periodic events may have by chance: one event at either edge of each candidate's time."""
    return 2 * candidates


def independent_by_chance(one, other, candidates):
    """The difference that two counts of independent events have by chance in 95 of 100 measurements."""
    return 1.96 * math.sqrt(one + other)
