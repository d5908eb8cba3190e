"""Runs of equal neighbours in a list: A B C B C B C D holds B C three times in a row."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# The longest piece that is looked for, and after how many returns of its first item the search for it ends. Both keep
# the search linear; a module of more parts than that is not one that a person would recognise.
_LONGEST_PERIOD = 64
_MOST_RETURNS = 8


class Run(NamedTuple):
    """`times` equal pieces of `period` items each, one after another from `start` on."""

    start: int
    period: int
    times: int


class _Stretch(NamedTuple):
    """Items of which each equals the one a period later, and the last period of them."""

    start: int
    end: int
    period: int


def repeated_runs(keys: Sequence[int], opening: Sequence[bool]) -> list[Run]:
    """Disjoint runs of at least two equal pieces, from left to right; where they compete, the longest is taken.

    A run that could start at several items starts at the last one that is `opening`, else at the last: a module
    usually begins where the model forks, and always ends with its join.
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
            runs.append(Run(start, period, times))
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
