"""Documents as plain texts."""

from typing import Any

from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.parts import Part


def texts(width: int, *parts: Part, **options: Any) -> list[str]:
    """Return the lines of a document without their styles."""
    return ["".join(span.text for span in line).rstrip() for line in laid_out(parts, width, **options)]
