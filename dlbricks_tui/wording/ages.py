"""The ages of measurements in words: old ones look like new ones otherwise."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING

from dlbricks_tui.wording.numbers import age

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dlbricks_tui.estimate.system_estimate import SystemEstimate

_JUST_NOW_SECONDS = 60.0


def now() -> float:
    """Return the time in seconds since 1970."""
    return time.time()


def seconds_since(when: str) -> float:
    """Return the seconds since a moment (ISO 8601)."""
    return now() - datetime.fromisoformat(when).timestamp()


def ago(when: str) -> str:
    """Return how long ago a moment (ISO 8601) was: `3 h ago`; empty for an empty text."""
    if not when:
        return ""
    moment = datetime.fromisoformat(when).timestamp()
    return age_words((moment, moment))


def minute_of(when: str) -> str:
    """Return a stored time by the minute: `2026-11-28 20:46`."""
    return when[:16].replace("T", " ")


def age_words(between: tuple[float, float] | None) -> str:
    """Return how long ago measurements were made: `4 min ago`, `3 h to 12 d ago`; empty if that is not known."""
    if between is None:
        return ""
    oldest, newest = (max(0.0, now() - moment) for moment in between)
    if oldest < _JUST_NOW_SECONDS:
        return "just now"
    first, last = age(newest), age(oldest)
    return f"{last} ago" if first == last else f"{first} to {last} ago"


def measured_ago(found: Iterable[SystemEstimate]) -> str:
    """Return how long ago the measurements in some estimates were made: `measured 3 h to 12 d ago`.

    It is empty if nothing was measured.
    """
    known = [it.measured_between for it in found if it.measured_between is not None]
    if not known:
        return ""
    between = min(first for first, _ in known), max(last for _, last in known)
    return f"measured {age_words(between)}"
