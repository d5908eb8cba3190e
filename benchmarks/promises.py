"""Promises of dlbricks beside the figures of a benchmark."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Promise:
    """A promise, and the figure that was found."""

    what: str
    wanted: str
    found: str
    kept: bool


def at_most(most: float, unit: str, what: str, found: float) -> Promise:
    """The promise that something is no more than that."""
    return Promise(what, f"at most {most:,g} {unit}", f"{found:,.4g} {unit}", found <= most)


def judge(promises: Iterable[Promise]) -> int:
    """Says of each promise whether it is kept; the exit status is 1 if one is not."""
    broken = False
    for it in promises:
        print(f"{it.what}: promised {it.wanted}, found {it.found}: {'kept' if it.kept else 'BROKEN'}")
        broken |= not it.kept
    return int(broken)
