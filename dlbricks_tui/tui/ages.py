"""The age of measurements, for all places that show them: old ones look like new ones otherwise."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING

from dlbricks_tui.wording.answers import age_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dlbricks_tui.estimate.system_estimate import SystemEstimate


def now() -> float:
    """Return the time in seconds since 1970."""
    return time.time()


def ago(when: str) -> str:
    """Return how long ago a moment (ISO 8601) was: `3 h ago`; empty for an empty text."""
    if not when:
        return ""
    moment = datetime.fromisoformat(when).timestamp()
    return age_words((moment, moment), now())


def measured_ago(found: Iterable[SystemEstimate]) -> str:
    """Return how long ago the measurements in some estimates were made: `measured 3 h to 12 d ago`.

    It is empty if nothing was measured.
    """
    known = [it.measured_between for it in found if it.measured_between is not None]
    if not known:
        return ""
    between = min(first for first, _ in known), max(last for _, last in known)
    return f"measured {age_words(between, now())}"
