"""Whose turn it is first in a round.

Rounds count where the host was calm at both of their ends. Whoever always ran next to one of them would be timed at
calmer moments than all others, and what is compared must not be.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeVar

# Its multiples, less what is whole of them, lie evenly between 0 and 1.
GOLDEN_RATIO = 0.618

T = TypeVar("T")


def in_turn(items: Sequence[T], lasting: Sequence[float], number: int) -> list[T]:
    """Items that last so long, going round, as they are to follow one another in the round of that number.

    In the long run each of them is in the middle of the round on average.
    """
    middles = [end - last / 2 for last, end in zip(lasting, accumulate(lasting), strict=True)]
    first = bisect_right(middles, number * GOLDEN_RATIO % 1 * sum(lasting))
    return [*items[first:], *items[:first]]
