"""Shares of one as shades: readable without colour, and apart in sixteen."""

from dlbricks_tui.tui.lines import Line, Span

# For none, for shares below each limit, and for all.
_LIMITS = (0.25, 0.5, 1.0)
_GLYPHS = "·░▒▓█"
_STYLES = ("muted", "text", "accent", "warn", "good")


def shaded(share: float, width: int) -> Span:
    """A share in so many cells."""
    step = 0 if share <= 0 else 1 + sum(share >= limit for limit in _LIMITS)
    return Span(_GLYPHS[step] * width, _STYLES[step])


def legend() -> Line:
    """What the shades mean."""
    meanings = ("none", *(f"<{100 * limit:.0f} %" for limit in _LIMITS), "all")
    steps = zip(_GLYPHS, _STYLES, meanings, strict=True)
    return tuple(part for glyph, style, said in steps for part in (Span(glyph * 2, style), Span(f" {said}  ", "muted")))
