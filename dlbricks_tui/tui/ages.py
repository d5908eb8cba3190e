"""The age of measurements, for all places that show them: old ones look like new ones otherwise."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING

from dlbricks_tui.wording.numbers import age

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dlbricks_tui.estimate.system_estimate import SystemEstimate


def now() -> float:
    """Return the time in seconds since 1970."""
    return time.time()


def ago(when: str) -> str:
    """Return how long ago a moment (ISO 8601) was: `3 h ago`; empty for an empty text."""
    return f"{age(now() - datetime.fromisoformat(when).timestamp())} ago" if when else ""


def measured_ago(found: Iterable[SystemEstimate]) -> str:
    """Return how long ago the measurements in some estimates were made: `measured 3 h to 12 d ago`.

    It is empty if nothing was measured.
    """
    spans = [it.measured_between for it in found]
    known = [it for it in spans if it is not None]
    if not known:
        return ""
    newest, oldest = age(now() - max(last for _, last in known)), age(now() - min(first for first, _ in known))
    return f"measured {newest} ago" if newest == oldest else f"measured {newest} to {oldest} ago"
