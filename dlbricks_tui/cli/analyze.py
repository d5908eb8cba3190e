"""`dlbricks analyze`: how fast models could be, what takes the time, and what changes would gain."""

from dlbricks_tui.cli.options import (
    add_models_argument,
)
from dlbricks_tui.cli.parser import Parser


def register(parser: Parser) -> None:
    """Add the options of `analyze`."""
    add_models_argument(parser, many=True)
