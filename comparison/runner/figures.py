"""Numbers of a row: median, 99th percentile, worst."""

import math


def percentile(values, share):
    """The smallest value that at least this share of all values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def summary(values):
    """Median, 99th percentile and worst. None if there is no value."""
    if not values:
        return None
    return percentile(values, 0.5), percentile(values, 0.99), max(values)


def median_bounds(values):
    """The bounds within which the true median lies with 95 %, by the order of the values."""
    ordered, middle, reach = sorted(values), len(values) / 2, 0.98 * math.sqrt(len(values))
    return ordered[max(0, math.floor(middle - reach))], ordered[min(len(ordered) - 1, math.ceil(middle + reach) - 1)]


HOURS_A_MONTH = 365 * 24 / 12

# Amazon S3 Standard in us-east-1, list price of November 2026, in dollars: as in docs/performance.md.
PRICE_OF_A_WRITE = 0.005 / 1000
PRICE_OF_A_READ = 0.0004 / 1000


def dollars_a_month(writes, reads, lists):
    """The price of requests that are made every hour. A listing costs as much as a write."""
    return HOURS_A_MONTH * ((writes + lists) * PRICE_OF_A_WRITE + reads * PRICE_OF_A_READ)
