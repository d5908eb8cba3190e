"""The sizes of the panels of the workbench in each layout, and their changes."""

from __future__ import annotations

from dataclasses import replace

from dlbricks_tui.tui.view_state import PanelSizes

# Layouts without sizes show one panel at a time.
USUAL = {"-medium": PanelSizes(32, 42, 40), "-wide": PanelSizes(52, 58, 40)}
_LEAST_LEFT, _LEAST_MIDDLE, _LEAST_RIGHT = 22, 24, 28
_LEAST_UPPER, _MOST_UPPER = 15, 85
STEP, STEP_UPPER = 4, 5


def fitted(sizes: PanelSizes, width: int) -> PanelSizes:
    """Return the sizes as far as a screen of this width has room for them."""
    right = min(max(sizes.right, _LEAST_RIGHT), width - _LEAST_LEFT - _LEAST_MIDDLE)
    left = min(max(sizes.left, _LEAST_LEFT), width - right - _LEAST_MIDDLE)
    return PanelSizes(left, right, min(max(sizes.upper, _LEAST_UPPER), _MOST_UPPER))


def wider(sizes: PanelSizes, panel: str, step: int) -> PanelSizes:
    """Return the sizes after a panel became wider by so many columns, or narrower."""
    if panel == "models":
        return replace(sizes, left=sizes.left + step)
    if panel == "tree":
        # It takes them from both sides.
        return replace(sizes, left=sizes.left - step // 2, right=sizes.right - step // 2)
    return replace(sizes, right=sizes.right + step)


def taller(sizes: PanelSizes, panel: str, step: int) -> PanelSizes:
    """Return the sizes after a panel at the right became taller, or shorter; the others have the whole height."""
    if panel not in ("details", "estimate"):
        return sizes
    return replace(sizes, upper=sizes.upper + (step if panel == "details" else -step))
