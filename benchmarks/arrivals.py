"""Show what the highest rate of a server depends on besides its speed, as a table.

usage: python -m benchmarks.arrivals

A simulated server always takes the same time for a request. The rates are shares of those that it could serve at most.
The columns, for p99 within a bound of so many service times:

- the highest rate that LoadGen calls valid: one of 662 requests may be slower, and the arrivals are always the same,
- the same for other random arrivals: the median, and 95 % of the tests,
- the rate at which 1 % of very many requests are slower.
"""

import sys

import numpy as np

from dlbricks_tui.scenarios.queueing import Numbers, highest_rates, slower_allowed, unit_schedule
from dlbricks_tui.scenarios.scenario import fewest_queries

PERCENTILE, BOUNDS = 99.0, (2.0, 3.0, 4.0, 6.0, 8.0)
TESTS, LONG_TESTS, LONG_TEST = 400, 40, 20_000


def main() -> int:
    """Print the table."""
    print("| bound | LoadGen | other arrivals | long run |\n|--:|--:|--:|--:|")
    queries = fewest_queries(PERCENTILE)
    allowed = slower_allowed(queries, PERCENTILE)
    for bound in BOUNDS:
        loadgen = highest_rates(unit_schedule(queries), np.ones((1, 1, queries)), bound, allowed)[0]
        others = highest_rates(random_arrivals(TESTS, queries), np.ones((1, TESTS, queries)), bound, allowed)
        slow = int(LONG_TEST * (1 - PERCENTILE / 100))
        arrivals = random_arrivals(LONG_TESTS, LONG_TEST)
        long_run = highest_rates(arrivals, np.ones((1, *arrivals.shape)), bound, slow)
        low, middle, high = np.quantile(others, [0.025, 0.5, 0.975])
        print(f"| {bound:g} | {loadgen:.0%} | {middle:.0%} ({low:.0%} to {high:.0%}) | {np.median(long_run):.0%} |")
    return 0


def random_arrivals(tests: int, requests: int) -> Numbers:
    """Return random arrivals of each test at a rate of one."""
    return np.random.default_rng(0).exponential(1.0, (tests, requests)).cumsum(axis=-1)


if __name__ == "__main__":
    sys.exit(main())
