"""The page of the facts about a framework that a new one has to state."""

from dlbricks_tui.runtime.traits import Traits
from docs.generators.fields import field_table
from docs.generators.markdown import MARK

HEAD = f"""{MARK}# Facts about a framework

The fields of `Traits` in `dlbricks_tui/runtime/traits.py`. Each framework has one such object; [adding
one](../development.md#adding-things) says what else a framework needs.

"""


def page() -> str:
    """Return the page."""
    return HEAD + field_table(Traits)
