"""Statistical tests of suites that were exported with many seeds: nothing in them depends on the model."""

import math
from collections import Counter
from collections.abc import Sequence

import pytest

from dlbricks_tui.share.suites.exporting import Assembled

# A test may fail by chance this often; the seeds are fixed.
P = 0.01
# How many seeds tell what depends on the model by rule, and how many also a slight tendency.
NUMBERS_OF_SEEDS = (150, pytest.param(500, marks=pytest.mark.soak))


def check_order(suites: Sequence[Assembled]) -> None:
    """Check that the places of real bricks are random."""
    total, real = len(suites[0].manifest.bricks), len(suites[0].key.meanings)
    assert 0 < real < total
    places = [
        place for suite in suites for place, brick in enumerate(suite.manifest.bricks) if brick.id in suite.key.meanings
    ]
    # A sum of ranks, as Wilcoxon has it.
    expected = len(suites) * real * (total - 1) / 2
    variance = len(suites) * real * (total - real) * (total + 1) / 12
    assert two_sided((sum(places) - expected) / math.sqrt(variance)) > P
    uniform = Counter(places)
    assert chi_square([uniform[place] for place in range(total)], len(places) / total) > P


def check_ids(suites: Sequence[Assembled]) -> None:
    """Check that the digits of ids are random, of real bricks and of decoys."""
    for digit in range(0, 32, 4):
        real, decoys = Counter[str](), Counter[str]()
        for suite in suites:
            for brick in suite.manifest.bricks:
                (real if brick.id in suite.key.meanings else decoys)[brick.id[digit]] += 1
        for counts in (real, decoys):
            assert chi_square([counts[each] for each in "0123456789abcdef"], counts.total() / 16) > P / 16
    everything = [brick.id for suite in suites for brick in suite.manifest.bricks]
    assert len(set(everything)) == len(everything)


def two_sided(deviation: float) -> float:
    """Return the probability that a standard normal number is at least this far from 0."""
    return math.erfc(abs(deviation) / math.sqrt(2))


def chi_square(counts: Sequence[int], expected: float) -> float:
    """Return the probability of such different counts with equal chances (Wilson-Hilferty approximation)."""
    freedom = len(counts) - 1
    statistic = sum((count - expected) ** 2 / expected for count in counts)
    spread = 2 / (9 * freedom)
    return 0.5 * math.erfc(((statistic / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(2 * spread))
