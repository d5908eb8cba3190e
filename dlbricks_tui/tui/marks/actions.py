"""The actions of the screen that compares the two marked rows."""

from dlbricks_tui.tui.keys.actions import EVERYWHERE, LIST, PANEL_STEPS, Action, Scope

MARKED = Scope(
    "marked",
    "On the screen of a comparison",
    Action("exchange", "x", "exchange", "Exchange A and B.", footer=True),
    Action("look_again", "r", "refresh", "Read the results stored by now.", footer=True),
    Action("go_to_parts", "1", "differences", "Go to the bricks or layers that differ most."),
    Action("go_to_circumstances", "2", "what else", "Go to what else differs."),
    *PANEL_STEPS,
    Action("leave", "escape", "back", "Go back; marks stay.", footer=True),
    outer=(LIST, EVERYWHERE),
)

PAIRS = MARKED.panel(
    "pairs",
    "In the list of differences",
    Action("sort", "s", "sort", "Sort by difference, by change, or by name.", footer=True),
)

SCOPES = (MARKED, PAIRS)
