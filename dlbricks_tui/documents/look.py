"""How doors draw documents."""

from typing import NamedTuple


class Look(NamedTuple):
    """How a door draws: a full cell of a bar, its parts from small to large, an interval below and above the value."""

    full: str
    parts: str
    below: str
    above: str
    # From none to all.
    shades: str
    # True if the titles of columns are capitals.
    capitals: bool = False


PANEL = Look("█", "▏▎▍▌▋▊▉", "▓", "░", "·░▒▓█")
TEXT = PANEL._replace(capitals=True)
ASCII = Look("#", "", "+", ".", ".:+*#", capitals=True)
