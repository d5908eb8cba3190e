"""The actions of the screen that compares the two marked rows."""

from dlbricks_tui.tui.keys.actions import EVERYWHERE, LIST, Action, Scope, panel_steps

MARKED = Scope(
    "marked",
    "On the screen of a comparison",
    (
        Action("marked.exchange", ("x",), "exchange", "Exchange A and B.", footer=True),
        Action("marked.look_again", ("r",), "refresh", "Read the results stored by now.", footer=True),
        Action("marked.go_to_parts", ("1",), "differences", "Go to the bricks or layers that differ most."),
        Action("marked.go_to_circumstances", ("2",), "what else", "Go to what else differs."),
        *panel_steps("marked"),
        Action("marked.leave", ("escape",), "back", "Go back; marks stay.", footer=True),
    ),
    (LIST, EVERYWHERE),
)

PAIRS = Scope(
    "pairs",
    "In the list of differences",
    (Action("pairs.sort", ("s",), "sort", "Sort by difference, by change, or by name.", footer=True),),
    (LIST, MARKED, EVERYWHERE),
)

SCOPES = (MARKED, PAIRS)
