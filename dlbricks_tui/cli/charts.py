"""Characters to draw bars, shades and trees with: readable without colour, and plain ASCII where there is no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import OverflowMethod


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The characters to draw with: a full cell, its parts from small to large, shades from none to all, and guides."""

    full: str
    parts: str
    shades: str
    # Before a line of a tree, before the last of its siblings, and below either.
    branch: str
    last_branch: str
    passing: str
    gap: str
    # What happens to words that are too long.
    overflow: OverflowMethod


UNICODE = Glyphs("█", "▏▎▍▌▋▊▉", "·░▒▓█", "├─ ", "└─ ", "│  ", "   ", "ellipsis")
ASCII = Glyphs("#", "", ".:+*#", "|- ", "`- ", "|  ", "   ", "crop")

# Below which share each shade between none and all ends.
SHADE_LIMITS = (0.25, 0.5, 1.0)
# For the same steps, in colours that terminals of 16 colours have.
SHADE_STYLES = ("dim", "cyan", "green", "yellow", "red")


def bar(share: float, width: int, glyphs: Glyphs) -> str:
    """A bar of at most `width` cells; a share that is not nothing shows."""
    steps = len(glyphs.parts) + 1
    filled = round(min(1.0, max(0.0, share)) * width * steps)
    if share > 0:
        filled = max(1, filled)
    full, part = divmod(filled, steps)
    return glyphs.full * full + (glyphs.parts[part - 1] if part else "")


def shade(share: float) -> int:
    """Which of the five shades a share has: the first for none, the last for all."""
    if share <= 0:
        return 0
    return 1 + sum(share >= limit for limit in SHADE_LIMITS)


def shade_legend(glyphs: Glyphs) -> str:
    """What the shades mean."""
    below = (f"{glyphs.shades[1 + step]} below {100 * limit:.0f} %" for step, limit in enumerate(SHADE_LIMITS))
    return "  ".join((f"{glyphs.shades[0]} none", *below, f"{glyphs.shades[-1]} all"))
