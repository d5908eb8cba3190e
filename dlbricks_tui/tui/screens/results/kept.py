"""A selection of results that is kept for comparing."""

from typing import NamedTuple

from dlbricks_tui.store.queries import Selection


class Kept(NamedTuple):
    """The results, and what the person calls them: what they were found by."""

    selection: Selection
    called: str
