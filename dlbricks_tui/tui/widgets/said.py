"""A few lines that a screen makes of what it knows."""

from collections.abc import Callable

from dlbricks_tui.tui.lines import Line
from dlbricks_tui.tui.widgets.ink import LineBar


class Said(LineBar):
    """Asks for its lines anew whenever it is drawn."""

    def __init__(self, make: Callable[[int], tuple[Line, ...]], *, classes: str = "said") -> None:
        super().__init__(classes=classes)
        self._make = make

    def lines(self, width: int) -> tuple[Line, ...]:
        return self._make(width)
