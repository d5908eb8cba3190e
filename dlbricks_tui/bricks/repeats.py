"""Runs of equal pieces in a list: A B C B C B C D has B C three times in a row."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# The longest piece to search for: people would not recognise a longer one as a module.
_LONGEST_PERIOD = 64
# The number of later occurrences of an item at which its piece may begin again. Both limits keep the search linear.
_MOST_RETURNS = 8


class Repetition(NamedTuple):
    """`times` equal pieces of `period` items each, one after another from `start` on."""

    start: int
    period: int
    times: int


class _Stretch(NamedTuple):
    """A range in which each item equals the one a period later, as far as that is in the range."""

    start: int
    end: int
    period: int


def repeated_runs(keys: Sequence[int], opening: Sequence[bool]) -> list[Repetition]:
    """Return disjoint runs of at least two equal pieces, from left to right; of overlapping runs the longest.

    A run that could start at several items starts at the last `opening` one, or else at the last: a module usually
    begins where the model forks, and ends with its join.
    """
    runs = []
    free = [True] * len(keys)
    for start, end, period in sorted(_stretches(keys), key=lambda it: (it.start - it.end, it.period, it.start)):
        while start < end and not free[start]:
            start += 1
        while start < end and not free[end - 1]:
            end -= 1
        times, spare = divmod(end - start, period)
        if times > 1 and all(free[start:end]):
            start += next((shift for shift in range(spare, -1, -1) if opening[start + shift]), spare)
            runs.append(Repetition(start, period, times))
            free[start : start + period * times] = [False] * (period * times)
    return sorted(runs)


def _stretches(keys: Sequence[int]) -> Iterator[_Stretch]:
    places: dict[int, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    known_to: dict[int, int] = {}
    for start, key in enumerate(keys):
        returns = places[key]
        following = bisect_right(returns, start)
        for place in returns[following : following + _MOST_RETURNS]:
            period = place - start
            if period > _LONGEST_PERIOD:
                break
            if known_to.get(period, 0) > place:
                continue
            end = place
            while end < len(keys) and keys[end] == keys[end - period]:
                end += 1
            known_to[period] = end
            if end - start >= 2 * period:
                yield _Stretch(start, end, period)
