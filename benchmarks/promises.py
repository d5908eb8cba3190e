"""What dlbricks promises of itself, held against what a benchmark has found."""

from collections.abc import Iterable
from typing import NamedTuple


class Promise(NamedTuple):
    """At most so much of something."""

    what: str
    found: float
    most: float
    unit: str

    @property
    def kept(self) -> bool:
        """Whether it was no more."""
        return self.found <= self.most


def judge(promises: Iterable[Promise]) -> int:
    """Says of each promise whether it is kept; the exit status is 1 if one is not."""
    broken = 0
    for promise in promises:
        verdict = "kept" if promise.kept else "BROKEN"
        print(f"promised at most {promise.most:,g} {promise.unit}, {promise.what}: {promise.found:,.4g}, {verdict}")
        broken += not promise.kept
    return int(broken > 0)
